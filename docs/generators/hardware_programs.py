"""The part of the page of coverage that is about whole programs on an H200, from `docs/data`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

DATA = Path(__file__).resolve().parents[1] / "data" / "hardware_programs.json"

_HEAD = """\
## Whole programs on an H200

On {date} an {device} ran triptych's own kernels for tensor cores: {launches} launches
of products and attention, with ragged sizes, causal masks, shared heads, subnormal, largest, infinite and NaN operands.
NVRTC {nvrtc} and Triton {triton} compiled them, ptxas ({assembler}) assembled them
with `{options}`, so that every operation is rounded by itself.
[The record](../tests/data/hardware/programs-h200.npz) has the programs, the launches and the results;
`benchmarks/hardware/compare_programs.py` runs all of them here.

With `TRIPTYCH_TENSOR_NUMERICS=hardware`, {same} of {outputs} arrays of results have the device's bits, NaN included,
{products}. Of attention, which takes exponentials, {differing:.2%} of the elements differ. That comes from
`ex2.approx`, `lg2.approx` and `div.full` alone, which this machine computes more exactly than the device: with other
functions in their place, exactly rounded ones, *plain* here, {plain_same} of {plain} arrays have the same bits.

Where arithmetic is `fast`, differences stay within a bound. For products it is k · 2⁻²³ of Σ|a·b|, and one step of the
output's type where that is not f32; for attention 2⁻⁹ (f16) or 2⁻⁶ (bf16) of the largest value, for logarithms of sums
2⁻²⁰ of their size or of 1. The columns *of the bound* have the largest difference as a part of that. *Contracted* are
elements that differ on the device itself where ptxas joins multiplications and additions to `fma`, as it does by
default: this machine never does that.

"""


class _Row(TypedDict):
    kernel: str
    target: str
    dtype: str
    outputs: int
    same: int
    plain: int
    plain_same: int
    elements: int
    differing: int
    part: float
    fast_differing: int
    fast_part: float
    contracted_differing: float


class _Data(TypedDict):
    device: str
    assembler: str
    options: str
    compilers: Mapping[str, str]
    date: str
    launches: int
    rows: Sequence[_Row]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    rows = data["rows"]
    name, driver = data["device"].split(", ")
    products = [row for row in rows if "matmul" in row["kernel"]]
    attention = [row for row in rows if "attention" in row["kernel"]]
    head = _HEAD.format(
        date=data["date"], device=f"{name} (driver {driver})", assembler=data["assembler"], options=data["options"],
        nvrtc=data["compilers"]["NVRTC"], triton=data["compilers"]["Triton"], launches=data["launches"],
        same=sum(row["same"] for row in rows), outputs=sum(row["outputs"] for row in rows),
        products=f"{sum(row['same'] for row in products)} of {sum(row['outputs'] for row in products)} of products",
        plain=sum(row["plain"] for row in rows), plain_same=sum(row["plain_same"] for row in rows),
        differing=sum(row["differing"] for row in attention) / sum(row["elements"] for row in attention),
    )  # fmt: skip
    columns = ("kernel", "types", "same bits", "plain", "differ", "of the bound", "fast: differ", "of the bound",
               "contracted")  # fmt: skip
    return head + table(columns, _rows(rows))


def _rows(rows: Sequence[_Row]) -> Iterator[Sequence[str]]:
    for row in rows:
        yield (
            code(row["kernel"]) + (f", {code(row['target'])}" if row["target"] else ""), row["dtype"],
            f"{row['same']} of {row['outputs']}", f"{row['plain_same']} of {row['plain']}" if row["plain"] else "",
            _share(row["differing"], row), _part(row["part"]), _share(row["fast_differing"], row),
            _part(row["fast_part"]), _share(row["contracted_differing"], row),
        )  # fmt: skip


def _share(count: float, row: _Row) -> str:
    return f"{count / row['elements']:.3%}" if count else "none"


def _part(part: float) -> str:
    return f"{part:.2g}" if part else "0"
