"""Tensor instructions against a recording of an H200: its very bits, NaN and the signs of zeros included.

The record is made by `benchmarks/hardware/record_mma.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mma_inputs import Bits, matrices
from mma_kinds import FLOATS, INTEGERS, KINDS, Kind, width
from numpy.typing import NDArray

from triptych.gpu.isa.tensor.summation import find_summation, multiply_accumulate
from triptych.gpu.isa.types import F64
from triptych.gpu.oracle.nan import hardware_nan
from triptych.gpu.oracle.rounding import directed, fused_multiply_add

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "mma-h200.npz"
SHOWN = 8
"""Rows and columns of the first multiplication whose results the record has."""


@cache
def record() -> Mapping[str, Any]:
    return json.loads(str(np.load(RECORD)["record"]))


@cache
def recorded(number: int) -> NDArray[Any]:
    """(styles, 8, 8) results of a kind."""
    return np.load(RECORD)[f"outputs{number}"]


def digest_of(*arrays: Bits) -> str:
    together = hashlib.sha256()
    for array in arrays:
        together.update(np.ascontiguousarray(array, np.uint64).tobytes())
    return together.hexdigest()[:16]


def expected(kind: Kind, a: Bits, b: Bits, c: Bits) -> Bits:
    """D of all tiles, (tiles, m, n)."""
    kept, sign_a, sign_b = kind.scales
    a, b = (
        x if sign > 0 else x ^ np.uint64(1 << (width(t) - 1))
        for x, t, sign in ((a, kind.a, sign_a), (b, kind.b, sign_b))
    )
    before = c if kept else np.zeros_like(c)
    rows, columns = a[:, :, None, :], np.swapaxes(b, 1, 2)[:, None]
    if kind.a in INTEGERS:
        return whole_numbers(kind, rows, columns, before)
    if kind.a == "f64":
        return chain_of_fma(kind, rows, columns, before)
    types = kind.d, kind.a, kind.b, kind.c
    row = find_summation(kind.mnemonic, types)
    assert row is not None
    return multiply_accumulate(row, types, rows, columns, before)


def whole_numbers(kind: Kind, a: Bits, b: Bits, c: Bits) -> Bits:
    """Exact sums, modulo 2^32 or stopped at the ends."""

    def value(name: str, bits: Bits) -> NDArray[np.int64]:
        signed = bits.astype(np.int64)
        return (
            np.where(signed >> (INTEGERS[name] - 1) == 1, signed - (1 << INTEGERS[name]), signed)
            if name[0] == "s"
            else signed
        )

    left, right = value(kind.a, a), value(kind.b, b)
    total = (left ^ right if ".xor." in kind.opcode else left * right).sum(axis=-1) + value("s32", c)
    if ".satfinite" in kind.opcode:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.view(np.uint64) & np.uint64(0xFFFF_FFFF)


def chain_of_fma(kind: Kind, a: Bits, b: Bits, c: Bits) -> Bits:
    """`fma` in the instruction's rounding mode, k ascending, with its NaN; of some of the results that are shown."""
    a, b, c = a[:1, :4], b[:1, :, :SHOWN], c[:1, :4, :SHOWN]
    mode = next((mode for mode in ("rz", "rm", "rp") if f".{mode}." in kind.opcode), "rn")
    total = c.view(np.float64)
    for k in range(kind.k):
        x, y = (np.ascontiguousarray(np.broadcast_to(each[..., k], c.shape)).view(np.float64) for each in (a, b))
        with np.errstate(all="ignore"):
            if mode == "rn":
                new = fused_multiply_add(F64, x.ravel(), y.ravel(), total.ravel())
            else:
                new = directed(F64, "fma", mode, (x.ravel(), y.ravel(), total.ravel()))
        total = hardware_nan(F64, new, y.ravel(), total.ravel(), x.ravel()).reshape(c.shape)
    return total.view(np.uint64)


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[kind.name for kind in KINDS])
def test_results_are_those_of_the_device(number: int) -> None:
    kind, entry = KINDS[number], record()["kinds"][number]
    assert entry["kind"] == kind.name
    assert tuple(entry["styles"]) == tuple(kind.styles)
    faults: list[str] = []
    for place, (style, (operands, results)) in enumerate(entry["styles"].items()):
        given = matrices(kind, style)
        assert digest_of(*given) == operands, f"{style}: recorded with other operands"
        found = expected(kind, *given)
        shown = recorded(number)[place].astype(np.uint64)
        shown = shown[: found.shape[1]]
        wrong = np.argwhere(found[0, :SHOWN, :SHOWN] != shown)
        faults += [f"{style} {tuple(x)}: {found[0][tuple(x)]:#x}, not {shown[tuple(x)]:#x}" for x in wrong[:3]]
        if not len(wrong) and kind.a != "f64" and digest_of(found) != results:
            faults.append(f"{style}: other results than the 8 × 8 that the record has differ")
    assert not faults, "\n".join(faults)


def test_the_record_says_where_it_is_from() -> None:
    assert record()["device"].startswith("NVIDIA H200")
    assert len(record()["kinds"]) == len(KINDS)
    assert {kind.a for kind in KINDS} == (FLOATS.keys() | INTEGERS.keys()) - {"f32", "s32"}
