"""The part of the page of coverage that is about unmodified Triton scripts, from `docs/data`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

_FOLDER = Path(__file__).resolve().parents[1] / "data"
DATA = _FOLDER / "public_scripts.json"
TESTS = _FOLDER / "public_tests.json"

_HEAD = """\
## Public Triton scripts

On {date} these scripts were run by `triptych run`, unmodified, with Triton {triton} and torch {torch}. That has no
CUDA: their tensors on `cuda` are those of the simulated device. *Passed* is a script that ran to its end, its own
comparisons and assertions included, with the sizes that it states. Benchmarks were made shorter by
{settings},
and of a `perf_report` as many points were measured as are named here (`TRIPTYCH_BENCHMARK_POINTS`). *Processor* is the
time of one, all threads together, with compilations and the program's own work in torch.
`docs/data/public_scripts.json` keeps outcomes and names; the scripts are not part of this repository.

"""

_TESTS_HEAD = """\
## Public Triton tests

On {date} tests of public repositories were run by pytest, with triptych's driver active, in one process, each with a
limit in seconds of the processor. Of a function with more *parameters* (each set is a test) than stand under *of each*,
as many were taken, at equal distances in pytest's order: the middle of each part. *Skipped* are those that the suite
itself leaves out on this target. Those that failed were run again once what is triptych's fault was mended, and some
beyond their limit with 90 to 120 s; the last outcome counts. `docs/data/public_tests.json` keeps the figures; the tests
are not part of this repository.

"""

_FAILED_HEAD = """\
### Tests that did not pass

"""


class _Script(TypedDict):
    suite: str
    script: str
    target: str
    points: str
    seconds: int
    """Of a processor."""
    outcome: str
    remark: str


class _Data(TypedDict):
    recorded: str
    triton: str
    torch: str
    settings: str
    """Those of all scripts."""
    suites: list[dict[str, str]]
    scripts: list[_Script]


class _Run(TypedDict):
    """A run of a file's tests: how many functions, with how many parameters in all, and how those taken ended."""

    suite: str
    tests: str
    triton: str
    target: str
    rule: str
    limit: int
    functions: int
    parameters: int
    passed: int
    failed: int
    skipped: int


class _Failure(TypedDict):
    suite: str
    test: str
    count: int
    whose: str
    reason: str


class _Tests(TypedDict):
    recorded: str
    suites: list[dict[str, str]]
    runs: list[_Run]
    failures: list[_Failure]


def section() -> str:
    """The sections' Markdown."""
    return _scripts() + _tests()


def _scripts() -> str:
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    return "".join((
        _HEAD.format(
            date=data["recorded"], triton=data["triton"], torch=data["torch"], settings=data["settings"]
        ),
        table(("suite", "version"), [(suite["what"], code(suite["version"])) for suite in data["suites"]]),
        table(("suite", "script", "target", "points", "processor", "outcome", "remark"), _rows(data["scripts"])),
    ))  # fmt: skip


def _rows(scripts: Sequence[_Script]) -> Iterator[Sequence[str]]:
    for row in scripts:
        yield (
            row["suite"], code(row["script"]), code(row["target"]), row["points"], f"{row['seconds']} s",
            row["outcome"], row["remark"],
        )  # fmt: skip


def _tests() -> str:
    data: _Tests = json.loads(TESTS.read_text(encoding="utf-8"))
    runs = [
        (
            run["suite"], code(run["tests"]), run["triton"], code(run["target"]), run["rule"], f"{run['limit']} s",
            str(run["functions"]), str(run["parameters"]), str(run["passed"]), str(run["failed"]), str(run["skipped"]),
        )
        for run in data["runs"]
    ]  # fmt: skip
    failures = [
        (row["suite"], code(row["test"]), str(row["count"]), row["whose"], row["reason"]) for row in data["failures"]
    ]
    columns = ("suite", "tests", "Triton", "target", "of each", "limit", "functions", "parameters", "passed", "failed")
    return "".join((
        _TESTS_HEAD.format(date=data["recorded"]),
        table(("suite", "version", "how"), [(one["what"], code(one["version"]), one["how"]) for one in data["suites"]]),
        table((*columns, "skipped"), runs),
        _FAILED_HEAD,
        table(("suite", "test", "tests", "whose fault", "reason"), failures),
    ))  # fmt: skip
