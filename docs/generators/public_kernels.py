"""The part of the page of coverage that is about kernels of public repositories, from `docs/data`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

DATA = Path(__file__).resolve().parents[1] / "data" / "public_kernels.json"

_ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
_OUTCOMES = ("right", "wrong", "error")
_WHOSE = {"source": "the source's own", "triptych": "triptych's", "open": "not known"}

_HEAD = """\
## Public kernels

On {date} kernels of public repositories were compiled and run, each instantiation with small inputs like those that
its host code makes, and compared with a reference in float64 or whole numbers. A run is *right* within the rounding of
its types, *wrong* where it differs, an *error* where it was refused or stopped. All samples, each kernel of llm.c,
CUB's device-wide algorithms and two thirds of its block primitives' instantiations were run again on 2026-11-30, and
gave what the table says. The scripts are not part of this repository; `docs/data/public_kernels.json` keeps outcomes
and names, and `tests/families` has kernels of our own for the same families.

Counted as right, though undefined, and named by `synccheck`: `reduce7` of the samples, and
`matmul_backward_bias_kernel8` and `9` of llm.c with blocks of 64. Their shuffles read lanes that do not take part, and
get 0. An H200 gave kernels of our own made like `reduce7` the same right sums, but 32 times the sum with blocks of one
thread.

"""
_EXTRACTION = """\
### How the device's part was taken

CUDA C++ is compiled without the host's code, which NVRTC does not take. Of a file, at namespace scope, stay: functions
whose head says `__device__`, `__global__` or `constexpr`, or a macro that stands for one of them; variables of the
device's spaces and constants; types that name nothing of the host; preprocessor lines, with includes of the file's own
headers (treated alike) and of CUDA's headers for devices. Nothing inside of what stays is changed, and lines keep their
numbers. CUB is compiled from its headers: block and warp primitives in small kernels that call them, device-wide
algorithms by CUB's own kernels and tunings, launched as its host code does.

### What was left out

"""


class _File(TypedDict):
    suite: str
    file: str
    kernels: list[str]
    runs: dict[str, dict[str, int]]


class _NotRight(TypedDict):
    suite: str
    file: str
    kernel: str
    outcome: str
    runs: dict[str, int]
    whose: str
    reason: str


class _Data(TypedDict):
    recorded: str
    suites: list[dict[str, str]]
    files: list[_File]
    not_right: list[_NotRight]
    excluded: list[list[str]]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    return "".join((
        _HEAD.format(date=data["recorded"]),
        table(("suite", "version", "kernels", *map(code, _ARCHITECTURES)), _suites(data)),
        "### What is not right\n\n",
        table(("suite", "file", "kernel", "outcome", "whose fault", "reason"), _not_right(data["not_right"])),
        "### By file\n\n",
        table(("suite", "file", "kernels", *map(code, _ARCHITECTURES)), _files(data["files"])),
        _EXTRACTION,
        table(("suite", "what", "why"), data["excluded"]),
    ))  # fmt: skip


def _suites(data: _Data) -> Iterator[Sequence[str]]:
    for suite in data["suites"]:
        files = [file for file in data["files"] if file["suite"] == suite["name"]]
        kernels = sum(len(file["kernels"]) for file in files)
        sums = [sum((Counter(file["runs"].get(one, {})) for file in files), Counter[str]()) for one in _ARCHITECTURES]
        yield suite["what"], code(suite["version"]), str(kernels), *map(_counted, sums)


def _files(files: Sequence[_File]) -> Iterator[Sequence[str]]:
    for file in files:
        runs = [_counted(file["runs"].get(one, {})) for one in _ARCHITECTURES]
        yield file["suite"], code(file["file"]), str(len(file["kernels"])), *runs


def _not_right(rows: Sequence[_NotRight]) -> Iterator[Sequence[str]]:
    for row in rows:
        runs = ", ".join(f"{count} on {code(one)}" for one, count in row["runs"].items())
        outcome = f"{row['outcome']}: {runs}"
        yield row["suite"], code(row["file"]), code(row["kernel"]), outcome, _WHOSE[row["whose"]], row["reason"]


def _counted(runs: Mapping[str, int]) -> str:
    return ", ".join(f"{runs[outcome]} {outcome}" for outcome in _OUTCOMES if runs.get(outcome))
