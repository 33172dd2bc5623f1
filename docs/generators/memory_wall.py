"""The page of the memory wall, from the record of its experiments, and its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from generators.drawing import figure
from generators.markdown import code, table
from triptych.chips import Chip, load, names
from triptych.memory_wall import EXPERIMENTS, Experiment, Point
from triptych.operators import OPERATORS, Operator
from triptych.operators.floor import parts
from triptych.report.experiments import value_on, verdict
from triptych.report.operators import intensity
from triptych.report.quantities import percent, ratio

_RECORDED = Path(__file__).resolve().parents[1] / "data" / "memory_wall.json"
_FOLDER = "pictures/memory-wall"
_HEAD = """\
# The memory wall

A chip computes faster than its memory brings operands. Where a kernel does fewer FLOPs for each byte than the chip's
**ridge** (its peak of FLOP/s over its bandwidth), the memory decides how long it takes, and no instruction saved helps.
This page has experiments on what follows from that. Each says what text-books say, as a formula, and what was measured
instead: counted while the kernels ran (or modelled, where it says so), at a named level of memory.

```console
$ triptych memory-wall bank_conflicts
Strides in shared memory  bank_conflicts
32 banks of 4 bytes: words s apart take gcd(s, 32) passes
…
loads of a word a lane 32 32 32 0%
loads of a word a lane 33 1 1 0%
…
all 33 are what the formula says, exactly
…
```

`triptych memory-wall` repeats all of them in a few minutes, `--quick` at small sizes. With
`--json docs/data/memory_wall.json` it makes the record that this page is written from (`python docs/generate.py`).
Experiments are files of [`memory_wall/`](../src/triptych/memory_wall/), which name the kernels.

"""
_INTENSITY = """\
## Intensity against the ridge

For each operator at one of its real sizes: the least FLOPs over the least bytes, in FLOP/byte, and for each chip how
many times as long its FLOPs take (those of matrix units, or the plain ones, at the chip's peak) as its bytes at the
bandwidth of memory. Below 1 the operator lies left of the ridge: **no** kernel for it is faster there than its bytes.
From 1 on (bold) it may be bound by computing. Formulas and the chips' published peaks: nothing was run.

"""
_RIDGES = "FLOP/byte at the ridge of each chip, for dense f16 on its matrix units and for f32 on the plain ones:\n\n"


def page() -> str:
    """The page's Markdown."""
    sections = "".join(_section(EXPERIMENTS[name], points) for name, points in recorded().items())
    return f"{_HEAD}{_intensities()}{sections}".rstrip() + "\n"


def pictures() -> Mapping[str, str]:
    """The figures, by the files' names below `docs/`."""
    return {_picture(name): _drawn(EXPERIMENTS[name], points) for name, points in recorded().items()}


@cache
def recorded() -> Mapping[str, Sequence[Point]]:
    """The points of each experiment, from the record."""
    rows = json.loads(_RECORDED.read_text(encoding="utf-8"))["experiments"]
    return {row["name"]: [Point(**point) for point in row["points"]] for row in rows}


def _picture(name: str) -> str:
    return f"{_FOLDER}/{name}.svg"


def _drawn(experiment: Experiment, points: Sequence[Point]) -> str:
    return figure(experiment.title, experiment.x, experiment.y, points)


def _section(experiment: Experiment, points: Sequence[Point]) -> str:
    headings = (experiment.x.label, "series", experiment.y.label, "formula", "off")
    rows = [
        (f"{one.x:g}", one.series, *(value_on(experiment.y, value) for value in (one.measured, one.formula)),
         percent(one.off))
        for one in sorted(points, key=lambda one: one.x) if one.x == max(each.x for each in points)
    ]  # fmt: skip
    return (
        f"## {experiment.title}\n\n{code(experiment.name)}\n\n**Formula.** {experiment.formula}.\n\n"
        f"**Measured.** {experiment.measured}\n\n![{experiment.title}]({_picture(experiment.name)})\n\n"
        f"Of the measurements {verdict(experiment, points)}. The last of each series:\n\n"
        f"{table(headings, rows)}{experiment.finding}\n\n"
    )


def _intensities() -> str:
    chips = [load(name) for name in names()]
    headings = ("operator", "T", "size", "FLOP/byte", *(code(chip.name) for chip in chips))
    ridges = [
        ("f16, matrix units", *(f"{chip.flops_per_s['tensor.f16'] / chip.memory_bytes_per_s:.0f}" for chip in chips)),
        ("f32, plain", *(_plain_ridge(chip) for chip in chips)),
    ]
    of_chips = table(("", *(code(chip.name) for chip in chips)), ridges)
    return f"{_INTENSITY}{_RIDGES}{of_chips}{table(headings, _operators(chips))}"


def _plain_ridge(chip: Chip) -> str:
    plain = chip.flops_per_s.get("f32") or sum(chip.flops_per_s[pipe] for pipe in ("vector", "scalar", "gpsimd"))
    return f"{plain / chip.memory_bytes_per_s:.3g}"


def _operators(chips: Sequence[Chip]) -> Iterator[Sequence[str]]:
    """An operator a row, those with the least FLOPs a byte first."""
    found = [(one, "f16" if "f16" in one.dtypes else one.dtypes[0]) for one in OPERATORS.values()]
    for one, dtype in sorted(found, key=lambda pair: intensity(pair[0], pair[0].sizes[-1], pair[0].dtype(pair[1]))):
        size = one.sizes[-1]
        told = ratio(intensity(one, size, one.dtype(dtype)))
        reaches = (_reach(one, dtype, chip) for chip in chips)
        yield f"[{one.name}](operators.md#{one.name})", dtype, size.name, told, *reaches


def _reach(operator: Operator, dtype: str, chip: Chip) -> str:
    """How much longer than the bytes the FLOPs take, by what takes longest of them."""
    seconds = parts(operator, operator.sizes[-1].values, operator.dtype(dtype), chip)
    share = max(seconds["matrix"], seconds["plain"]) / seconds["memory"]
    return f"**{ratio(share)}**" if share >= 1 else f"{share:.2g}"
