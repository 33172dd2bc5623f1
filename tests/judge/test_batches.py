"""Batches: lines do not depend on the number of workers, and no fault of the judge ends one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from vec_add_sources import SOURCES

from triptych import judge
from triptych.cli.score import score as score_command
from triptych.judge.scoring import judge_error
from triptych.judge.workshop import EXECUTION_LIMITS, Workshop
from triptych.operators import operator
from triptych.report.json_report import schema
from triptych.report.score_json import SCORE_SCHEMA, score_json
from triptych.report.scores import batch_summary

MEASURED = ("cpu_s",)
"""All that may differ between two lines of one candidate, seed and version."""
TASK = judge.task(operator("vec_add"), seed=11)
ENDINGS = "right", "wrong", "hangs", "exits", "raises"
CANDIDATES = tuple(judge.Candidate(SOURCES[name], f"{name}.py") for name in ENDINGS)


def lines_of(path: Path) -> dict[str, bytes]:
    """The lines of a file of scores without what is measured, by the candidates' names."""
    found: dict[str, bytes] = {}
    for line in path.read_bytes().splitlines():
        row: dict[str, Any] = json.loads(line)
        for name in MEASURED:
            assert row.pop(name) >= 0
        found[row["solution"]["name"]] = json.dumps(row).encode()
    return found


def test_lines_do_not_depend_on_workers(tmp_path: Path, pool: judge.Pool) -> None:
    """Nor on what the pool knows of a candidate: the second time it has its plans and its kernels' code."""
    with judge.Pool(1) as alone:
        for number, workers in enumerate((pool, pool, alone)):
            results = judge.Results(tmp_path / f"{number}.jsonl")
            tally = judge.score_all(CANDIDATES, TASK, workers, results, score_json, lambda _: None)
            assert tally == judge.Tally(failures=len(ENDINGS) - 1, errors=0)
    first, second, third = (lines_of(tmp_path / f"{number}.jsonl") for number in range(3))
    assert first.keys() == {one.name for one in CANDIDATES}
    assert first == second == third


def fail_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging a candidate of that name divides by 0, others do not pass; nothing runs."""

    def score_candidate(candidate: judge.Candidate, task: judge.Task, _: Workshop, *, baselines: bool) -> judge.Score:
        assert not baselines
        if candidate.name == name:
            raise ZeroDivisionError("of the judge's own")
        failed = judge.Invalid(judge.Reason("no_kernel", "no launch"))
        return replace(judge_error(candidate, task, ValueError()), verdict=failed)

    monkeypatch.setattr("triptych.judge.pool.score_candidate", score_candidate)
    monkeypatch.setattr(judge.Pool, "layers", _no_layers)


def _no_layers(_: judge.Pool) -> tuple[str, ...]:
    return ()


def test_a_fault_of_the_judge_ends_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "scores.jsonl"

    def run() -> judge.Tally:
        with judge.Pool(2) as pool:
            return judge.score_all(CANDIDATES, TASK, pool, judge.Results(out), score_json, lambda _: None)

    fail_on("wrong.py", monkeypatch)
    tally = run()
    assert tally == judge.Tally(failures=len(CANDIDATES), errors=1)
    assert batch_summary(5, tally, out).endswith(
        "On 1 of these the judge itself failed: the same command judges them again."
    )
    row = json.loads(lines_of(out)["wrong.py"])
    assert (row["verdict"], row["reward"], row["reason"]["code"]) == ("invalid", 0.0, "judge_error")
    assert row["reason"]["message"].startswith("ZeroDivisionError: of the judge's own (test_batches.py, line ")
    validator: Any = jsonschema.Draft202012Validator(schema(SCORE_SCHEMA))
    validator.validate({**row, "cpu_s": 0.0})
    assert run() == tally
    fail_on("", monkeypatch)
    assert run() == judge.Tally(failures=len(CANDIDATES), errors=0)
    names = [json.loads(line)["solution"]["name"] for line in out.read_text().splitlines()]
    assert sorted(names) == sorted([*(one.name for one in CANDIDATES), "wrong.py", "wrong.py"])


def test_the_exit_status_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "candidates"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("answer = 42\n")
    for failing, status in (("a.py", 2), ("", 1)):
        fail_on(failing, monkeypatch)
        with pytest.raises(typer.Exit) as ended:
            score_command(folder, operator="vec_add", workers=1, out=tmp_path / "scores.jsonl")
        assert ended.value.exit_code == status


def test_a_pool_that_is_closed_ends_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no fault of the judge: no candidate gets a line."""
    fail_on("", monkeypatch)
    out = tmp_path / "scores.jsonl"
    pool = judge.Pool(1)
    pool.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        judge.score_all(CANDIDATES, TASK, pool, judge.Results(out), score_json, lambda _: None)
    assert out.read_bytes() == b""


def test_two_problems_of_one_name() -> None:
    """A batch and what a pool knows of candidates tell them apart, and sizes of one name too."""
    one = CANDIDATES[0]
    other = replace(TASK, operator=replace(TASK.operator, text_digest="0" * 64))
    larger = replace(TASK, sizes=(replace(TASK.sizes[0], values={"n": 1001}),))
    assert len({judged.key(one) for judged in (TASK, other, larger)}) == 3
    assert len({judged.identity(one) for judged in (TASK, other, larger, replace(TASK, seed=12))}) == 4


def test_processor_time_decides() -> None:
    """Else a verdict would depend on what else runs on the machine."""
    assert EXECUTION_LIMITS.wall_s >= 10 * EXECUTION_LIMITS.cpu_s
