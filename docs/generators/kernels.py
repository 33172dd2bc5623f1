"""The page of triptych's own kernels: which there are, and the ladders with what was counted."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import triptych
from generators.kernel_sizes import LANGUAGES, Row, Run, functions, runs
from generators.ladders import LADDERS, Ladder, columns
from generators.markdown import code, first_paragraph, table
from triptych.kernels import cuda
from triptych.operators import OPERATORS
from triptych.report.quantities import ratio

_DOCS = Path(__file__).resolve().parents[1]
_SOURCE = Path(triptych.__file__).resolve().parent
_RECORDED = _DOCS / "data" / "kernel_ladders.json"
_SIZES_RECORDED = _DOCS / "data" / "kernel_sizes.json"
_HEAD = """\
# Kernels

Kernels to run, to measure and to copy, in `triptych.kernels.cuda`, `.triton` and `.nki`: functions of arrays, which
check what they are given, choose the grid and return new arrays. Each kernel says where it decides on **tiling** (what
a block, a program or an engine takes at a time), the **memory hierarchy** (what is kept where, and how often it comes),
**mapping** (which thread, lane, partition or engine does what) and **overlap** (what runs at the same time). Links lead
to the kernels. Tests compare them with the [operators](operators.md) that they carry out.

```python
import numpy as np

import triptych as tt
from triptych.kernels import cuda, nki

x = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
bounds = []
for softmax, chip in ((cuda.softmax, "h100"), (nki.softmax, "trn2")):
    with tt.profile(chip=chip) as profile:
        y = softmax(x)
    assert np.allclose(y.sum(1), 1)
    bounds.append(str(profile.launches[0].roofline.bound))
print(bounds)  # ['memory', 'memory']
```

"""
_SIZES = """\
## Named sizes

Every kernel at every named size of its operator: the largest error as a part of what the operator allows, right up to
1, and the bytes that the launches touch at the level of DRAM (HBM on NKI), over the least that any kernel does.
{findings} Inputs are the operator's ordinary ones, in T. A dash stands where there is no kernel of that
name; where a kernel does not take a size, or a row does not fit SBUF, its message says so. The hosts that ran them
(2026-11-30): {hosts}.{left}

"""
_LADDERS = """\
## Ladders

Several kernels for one problem, each a step closer to the hardware. The figures were counted; `triptych run` on a
script that calls the functions shows these and more, by source line.

"""


def page() -> str:
    """The page's Markdown."""
    recorded = json.loads(_RECORDED.read_text(encoding="utf-8"))
    ladders = "".join(_ladder(one, recorded[name]) for name, one in LADDERS.items())
    listed = table(("operator", *LANGUAGES), _rows())
    return f"{_HEAD}{listed}{_others()}{_named_sizes()}{_LADDERS}{ladders}".rstrip() + "\n"


def _named_sizes() -> str:
    found: dict[str, dict[str, Row]] = json.loads(_SIZES_RECORDED.read_text(encoding="utf-8"))
    lines: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for run in sorted(runs(), key=_place):
        name = run.name.partition(".")[2]
        cells = lines.setdefault((run.operator.name, name, run.size.name, run.dtype), {})
        cells[run.language] = _told(found.get(run.name, {}).get(run.size.name))
    rows = [
        (code(name), size, dtype, *(cells.get(language, "–") for language in LANGUAGES))
        for (_, name, size, dtype), cells in lines.items()
    ]
    return _said_of_sizes(found) + table(("kernel", "size", "T", *LANGUAGES), rows)


def _place(run: Run) -> tuple[int, bool, str, int]:
    """Where a run stands: by operator, by kernel, those that bear the operator's name first, by size."""
    name = run.name.partition(".")[2]
    return [*OPERATORS].index(run.operator.name), name != run.operator.name, name, run.operator.sizes.index(run.size)


def _said_of_sizes(found: Mapping[str, Mapping[str, Row]]) -> str:
    """The paragraph before the table, which says what is missing and what is old."""
    every = {(run.name, run.size.name): run for run in runs()}
    rows = {key: found[key[0]][key[1]] for key in every if key[1] in found.get(key[0], {})}
    hosts = Counter(row["host"] for row in rows.values())
    findings = sum(row.get("findings", 0) for row in rows.values())
    missing = len(every) - len(rows)
    old = sum(row["digest"] != every[key].digest for key, row in rows.items())
    left = f"\nOf {len(every)} there are {missing}, large ones, that were not run yet: “not run”." if missing else ""
    left += f"\nOf {old} the kernel was changed since." if old else ""
    return _SIZES.format(
        findings=f"The checks found {findings or 'nothing'}.",
        hosts="; ".join(f"{host}: {count}" for host, count in hosts.most_common()),
        left=left,
    )


def _told(run: Row | None) -> str:
    """The largest error and the bytes over the least; or what the function wants instead."""
    if run is None:
        return "not run"
    refused = run.get("refused")
    return (
        f"{ratio(run['error'])}, {run['bytes_over_least']:.2f}×"
        if refused is None
        else refused.partition("; ")[2] or refused
    )


def _rows() -> Iterator[Sequence[str]]:
    """An operator a row, with the functions of each language that carry it out."""
    for name in OPERATORS:
        cells = [
            ", ".join(_link(package, one.function) for one in functions(package) if one.operator == name)
            for package in LANGUAGES.values()
        ]
        if any(cells):
            yield f"[{name}](operators.md#{name})", *cells


def _others() -> str:
    rows = [
        (_link(package, one.function), language, first_paragraph(getattr(package, one.function)))
        for language, package in LANGUAGES.items()
        for one in functions(package)
        if one.operator is None
    ]
    return f"Besides:\n\n{table(('function', 'language', 'what it is'), rows)}"


def _link(package: ModuleType, name: str) -> str:
    function: Any = getattr(package, name)
    function = getattr(function, "function", function)
    place = Path(inspect.getfile(function))
    if package is cuda:
        own = place.with_name(f"{name}.cu")
        named = re.findall(r'"(\w+\.cu)"', inspect.getsource(function))
        place = own if own.exists() else place.with_name(named[0])
    return f"[{code(name)}](../src/triptych/{place.relative_to(_SOURCE)})"


def _ladder(ladder: Ladder, recorded: dict[str, dict[str, int]]) -> str:
    heading = f"### {ladder.name}\n\n{ladder.problem}, on {code(ladder.chip)}.\n\n"
    names = ("launches", *columns(ladder))
    rows = [
        (code(one.name), one.takes, *(f"{recorded[one.name][name]:,}".replace(",", " ") for name in names))
        for one in ladder.rungs
    ]
    return heading + table(("kernel", "what it has that the one before has not", *names), rows)
