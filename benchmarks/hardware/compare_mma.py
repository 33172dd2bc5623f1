"""How far the fast arithmetic of tensor instructions is from the hardware's, as a table for the documentation.

python benchmarks/hardware/compare_mma.py

Over the operands of the recording, whose results `tests/hardware/test_mma_executors.py` finds the hardware's arithmetic
to give. The device is not needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "hardware"))

from mma_inputs import Bits, matrices
from mma_kinds import FLOATS, INTEGERS, KINDS, Float, Kind
from mma_run import run_generated

USUAL = ("narrow",)
OTHERS = ("finite", "wide", "powers", "ones", "sparse", "beside", "clusters", "cancel")
"""Styles of finite numbers, without those at the ends of the range."""


def numbers(name: str, bits: Bits) -> NDArray[np.float64]:
    """Raw bits of a format as doubles; what is not finite is NaN."""
    f: Float = FLOATS[name]
    raw = bits.astype(np.int64) >> f.unused
    size = raw & ((1 << (f.exponent + f.mantissa)) - 1)
    field, mantissa = size >> f.mantissa, size & ((1 << f.mantissa) - 1)
    significand = np.where(field > 0, mantissa | 1 << f.mantissa, mantissa)
    value = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - f.bias - f.mantissa)
    value = np.where(field > f.highest, np.nan, value)
    return np.where(raw >> (f.exponent + f.mantissa) & 1 == 1, -value, value)


def differences(kind: Kind, styles: Sequence[str]) -> tuple[float, float, float]:
    """The share of results that differ, and the largest difference: in units of the result, and to sum |a·b| + |c|."""
    made = [matrices(kind, style) for style in styles]
    fast, exact = (run_generated(kind, made, numerics) for numerics in ("fast", "hardware"))
    a, b, c = (np.concatenate(parts) for parts in zip(*made, strict=True))
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(numbers(kind.a, a)) @ np.abs(numbers(kind.b, b)) + np.abs(numbers(kind.c, c))
        ours, theirs = numbers(kind.d, fast), numbers(kind.d, exact)
        apart = np.abs(ours - theirs)
    f = FLOATS[kind.d]
    known = np.isfinite(apart) & (size >= np.ldexp(1.0, 1 - f.bias + f.mantissa))
    _, exponent = np.frexp(np.abs(theirs))
    unit = np.ldexp(1.0, np.maximum(exponent - 1, 1 - f.bias) - f.mantissa)
    values: list[Any] = [x[known].max() for x in (apart / unit, apart / np.where(size > 0, size, 1))]
    return float((fast != exact).mean()), float(values[0]), float(values[1])


def group_of(kind: Kind) -> tuple[str, str, str]:
    """The row of the table that a kind belongs to."""
    small = kind.a in ("e4m3", "e5m2")
    name = ("wgmma" if kind.mnemonic == "wgmma" else "mma") if small else "mma, wmma, wgmma"
    return name, "8 bits" if small else "f16" if "f16" in (kind.c, kind.d) else "f16, bf16, tf32", kind.d


def main() -> None:
    """Prints the table: the largest of all kinds of a row."""
    rows: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    for kind in KINDS:
        if kind.a not in INTEGERS and kind.a != "f64" and kind.scales == (1, 1, 1) and kind.c == kind.d:
            most = differences(kind, OTHERS)[2]
            rows.setdefault(group_of(kind), []).append((*differences(kind, USUAL), most))
    print("| instruction | A, B | C, D | results that differ | units of the result | of the sum | of any sum |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for names, found in rows.items():
        share, units, relative, most = (max(values) for values in zip(*found, strict=True))
        print(f"| {' | '.join(names)} | {share:.1%} | {units:.0f} | {relative:.0e} | {most:.0e} |")


if __name__ == "__main__":
    main()
