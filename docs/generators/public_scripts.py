"""The part of the page of coverage that is about unmodified Triton scripts, from `docs/data`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

DATA = Path(__file__).resolve().parents[1] / "data" / "public_scripts.json"

_HEAD = """\
## Public Triton scripts

On {date} these scripts were run by `triptych run`, unmodified but where that is said, with Triton {triton} and torch
{torch}. That has no CUDA: their tensors on `cuda` are those of the simulated device. *Passed* is a script that
ran to its end, its own comparisons and assertions included, with the sizes that it states. Of its `perf_report`s as
many points were measured as are named here (`TRIPTYCH_BENCHMARK_POINTS`). `docs/data/public_scripts.json` keeps
outcomes and names; the scripts are not part of this repository.

"""


class _Script(TypedDict):
    suite: str
    script: str
    target: str
    points: str
    outcome: str
    remark: str


class _Data(TypedDict):
    recorded: str
    triton: str
    torch: str
    suites: list[dict[str, str]]
    scripts: list[_Script]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    return "".join((
        _HEAD.format(date=data["recorded"], triton=data["triton"], torch=data["torch"]),
        table(("suite", "version"), [(suite["what"], code(suite["version"])) for suite in data["suites"]]),
        table(("suite", "script", "target", "points", "outcome", "remark"), _rows(data["scripts"])),
    ))  # fmt: skip


def _rows(scripts: Sequence[_Script]) -> Iterator[Sequence[str]]:
    for row in scripts:
        yield (
            row["suite"], code(row["script"]), code(row["target"]), row["points"], row["outcome"], row["remark"],
        )  # fmt: skip
