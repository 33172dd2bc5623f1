"""Candidates from their source to their score, in sandboxes: verdicts, what they rest on, batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console
from vec_add_sources import SOURCES

import triptych as tt
from triptych import judge
from triptych.chips import Chip, load
from triptych.judge import scoring
from triptych.judge.pricing import launch_cost
from triptych.operators import operator
from triptych.report.json_report import schema
from triptych.report.score_json import SCORE_SCHEMA, score_json
from triptych.report.scores import score_text

VERDICTS = {
    "right": ("passed", None),
    "wrong": ("wrong", "wrong_result"),
    "out_of_bounds": ("crashed", "kernel_fault"),
    "hangs": ("timed out", "kernel_hung"),
    "exits": ("crashed", "process_died"),
    "raises": ("crashed", "host_error"),
    "touches": ("invalid", "touched_values"),
    "no_function": ("invalid", "no_solution"),
    "no_python": ("invalid", "unreadable"),
}


def scored(name: str, pool: judge.Pool, seed: int | None = 3) -> judge.Score:
    return judge.score(judge.Candidate(SOURCES[name], f"{name}.py"), "vec_add", seed=seed, baselines=False, pool=pool)


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name: str, pool: judge.Pool) -> None:
    score = scored(name, pool)
    code = None if score.reason is None else score.reason.code
    assert (score.verdict.outcome.value, code) == VERDICTS[name], score.reason
    assert score.passed == (name == "right") == (score.reward > 0)
    document = score_json(score)
    validator: Any = jsonschema.Draft202012Validator(schema(SCORE_SCHEMA))
    validator.validate(json.loads(json.dumps(document, allow_nan=False)))
    assert document["verdict"] == score.verdict.outcome.value
    text = _shown(score)
    assert VERDICTS[name][0] in text
    assert code is None or code in text


def test_what_is_quicker_than_the_limit_is_not_paid(pool: judge.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program can be: whoever seems to be has found a hole in the judge."""

    def half_a_launch(_steps: object, chip: Chip) -> float:
        return launch_cost(chip) / 2

    monkeypatch.setattr(scoring, "estimate", half_a_launch)
    score = scored("right", pool)
    assert score.reason is not None
    assert (score.verdict.outcome.value, score.reason.code) == ("cheated", "impossible_time")
    assert score.reward == 0


def _shown(score: judge.Score) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(score_text(score))
    return captured.get()


def test_what_a_score_says(pool: judge.Pool) -> None:
    chips = "h100", "a100-80"
    score = judge.score(SOURCES["right"], "vec_add", chips=chips, seed=3, baselines=False, pool=pool)
    assert (score.language, score.dtype, score.sizes, score.seed) == ("cuda", "f32", ("tiny",), 3)
    assert [(one.size, one.chip) for one in score.times] == [("tiny", "h100"), ("tiny", "a100-80")]
    assert all(0 < one.fraction <= 1 for one in score.times)
    assert score.components == judge.Components(1.0, 1.0, 1.0, 1.0, score.reward)
    assert [launch.kernel for launch in score.launches] == ["add", "add"]  # a launch for each compile target
    assert "memory" in score.layers
    _error_bars(score)


def _error_bars(score: judge.Score) -> None:
    """A chip that was compared with measured times has one, others say that they have none."""
    compared, other = score_json(score)["times"]
    bar = load("h100").error_bar
    assert bar is not None
    assert compared["error_bar"] == {"low": bar.low, "high": bar.high, "source": bar.source}
    assert compared["most_s"] == compared["estimate_s"] * bar.high
    assert (other["error_bar"], other["most_s"]) == (None, None)
    text = " ".join(_shown(score).split())
    assert f"Times on h100 may be {bar.low:.2g} to {bar.high:.2g} of the estimate" in text
    assert "On a100-80 nobody has compared estimates with measured times" in text


def test_the_counterexample_is_shrunk(pool: judge.Pool) -> None:
    verdict = scored("wrong", pool).verdict
    assert isinstance(verdict, judge.Wrong)
    assert verdict.counterexample is not None
    assert verdict.counterexample.size == {"n": 1000 // 16}


def _stable(score: judge.Score) -> dict[str, Any]:
    return score_json(replace(score, cpu_s=0.0))


def test_seeds_are_drawn_where_none_is_asked_for(pool: judge.Pool) -> None:
    first, second = (judge.reward(SOURCES["right"], "vec_add", pool=pool) for _ in range(2))
    assert first.seed != second.seed
    assert first.reward == second.reward > 0
    again = judge.reward(SOURCES["right"], "vec_add", seed=first.seed, pool=pool)
    assert _stable(again) == {**_stable(first), "solution": _stable(again)["solution"]}


def test_batches_go_on_where_they_ended(tmp_path: Path, pool: judge.Pool) -> None:
    folder, out = tmp_path / "candidates", tmp_path / "scores.jsonl"
    folder.mkdir()
    for name in ("right", "raises", "no_python"):
        (folder / f"{name}.py").write_text(SOURCES[name])
    task = judge.task(operator("vec_add"), seed=5)
    told: list[judge.Progress] = []

    def run() -> judge.Tally:
        found = judge.candidates_in(folder)
        return judge.score_all(found, task, pool, judge.Results(out), score_json, told.append)

    assert run() == judge.Tally(failures=2, errors=0)
    lines = out.read_text().splitlines()
    assert sorted(json.loads(line)["verdict"] for line in lines) == ["crashed", "invalid", "passed"]
    assert [(one.done, one.total) for one in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    out.write_text("\n".join(lines[:2]) + "\n" + lines[2][:100])  # as a crash leaves it
    told.clear()
    assert run() == judge.Tally(failures=2, errors=0)
    assert [(one.done, one.total) for one in told] == [(2, 3), (3, 3)]
    assert sorted(out.read_text().splitlines(), key=len) == sorted(lines, key=len) or len(told) == 2
    assert len(out.read_text().splitlines()) == 3
    (folder / "raises.py").write_text(SOURCES["raises"] + "# changed\n")
    told.clear()
    run()
    assert [(one.done, one.total) for one in told] == [(2, 3), (3, 3)]
    out.write_text("no score\n")
    with pytest.raises(tt.UsageError, match="a line that is no score"):
        judge.Results(out)


def test_ctrl_c_ends_a_batch_and_loses_nothing(tmp_path: Path) -> None:
    folder, out = tmp_path / "candidates", tmp_path / "scores.jsonl"
    folder.mkdir()
    (folder / "a_quick.py").write_text(SOURCES["no_python"])
    (folder / "b_slow.py").write_text("while True: pass\n")
    command = [sys.executable, "-m", "triptych", "score", str(folder), "--operator", "vec_add", "--out", str(out)]
    process = subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 120
        while not (out.exists() and out.read_bytes()) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "interrupted" in told
    assert [json.loads(line)["solution"]["name"] for line in out.read_text().splitlines()] == ["a_quick.py"]


def test_the_command(tmp_path: Path) -> None:
    source = tmp_path / "solution.py"
    source.write_text(SOURCES["no_function"])
    command = [sys.executable, "-m", "triptych", "score", str(source)]
    told = subprocess.run([*command, "--operator", "vec_add", "--json", "-"], capture_output=True, text=True)
    assert told.returncode == 1, told.stderr
    assert json.loads(told.stdout)["reason"]["code"] == "no_solution"
    wrong = subprocess.run([*command, "--operator", "vec_ad"], capture_output=True, text=True)
    assert (wrong.returncode, "did you mean vec_add" in wrong.stderr) == (2, True)
