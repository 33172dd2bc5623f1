"""The part of the page of coverage that is about Triton's tutorials as the judge sees them, from `docs/data`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

DATA = Path(__file__).resolve().parents[1] / "data" / "triton_tutorials.json"

_HEAD = """\
## Triton's tutorials, judged

What Triton's tutorials compute (`python/tutorials` of {version}) was handed to [the
judge](judge.md) as it is written there, with Triton {triton} and torch {torch}. `docs/record_triton_tutorials.py` puts
a `solution` behind a tutorial's own text that calls its function, and cuts what runs the example. {passed} of {total}
programs pass. An operator that the catalogue has not differs from one of it in how matrices lie in memory. Nothing of
the tutorials is part of this repository. {unrecorded}

"""


class _Program(TypedDict):
    file: str
    operator: str
    dtype: str
    size: Mapping[str, int]
    verdict: str
    code: str
    message: str
    remark: str
    reward: float


class _Data(TypedDict):
    version: str
    triton: str
    torch: str
    programs: Mapping[str, _Program]
    without: Mapping[str, str]
    unrecorded: Sequence[str]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    programs = data["programs"]
    head = _HEAD.format(
        version=data["version"],
        triton=data["triton"],
        torch=data["torch"],
        passed=sum(one["verdict"] == "passed" for one in programs.values()),
        total=len(programs),
        unrecorded=f"Not judged yet: {'; '.join(data['unrecorded'])}." if data["unrecorded"] else "",
    )
    columns = ("tutorial", "program", "operator", "T", "size", "verdict", "reward", "reason")
    return head + table(columns, sorted(_rows(data), key=lambda row: row[0]))


def _rows(data: _Data) -> Iterator[Sequence[str]]:
    for name, one in data["programs"].items():
        size = " ".join(f"{axis}={length}" for axis, length in one["size"].items())
        reward = f"{one['reward']:.3f}" if one["verdict"] == "passed" else ""
        reason = f"{code(one['code'])}: {one['remark'] or one['message'].partition(chr(10))[0]}" if one["code"] else ""
        yield code(one["file"]), name, code(one["operator"]), one["dtype"], size, one["verdict"], reward, reason
    for file, why in data["without"].items():
        yield code(file), "", "", "", "", "no operator", "", why
