"""a · b + c rounded once, by exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from triptych.gpu.isa.types import F32, ScalarType
from triptych.gpu.oracle.values import Lanes

_FORMATS = {32: (24, -149, 128), 64: (53, -1074, 1024)}
"""By width: digits of the significand, exponent of the smallest subnormal, exponent that overflows."""


def round_to_nearest(value: Fraction, bits: int) -> float:
    """The single or double nearest to a fraction other than 0, ties to even."""
    digits, least, overflow = _FORMATS[bits]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    quantum = max(exponent - digits + 1, least)
    units = round(value / Fraction(2) ** quantum)
    sign = -1.0 if value < 0 else 1.0
    if abs(units).bit_length() + quantum > overflow:
        return sign * math.inf
    return sign * math.ldexp(abs(units), quantum)


def _fused(a: float, b: float, c: float, bits: int) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return round_to_nearest(exact, bits) if exact else a * b + c


def fused_multiply_add(t: ScalarType, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a · b + c of singles or doubles, rounded once."""
    if t is not F32:
        lanes = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        return np.array([_fused(x, y, z, 64) for x, y, z in lanes], np.float64)
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    result = total.astype(np.float32)
    for lane in np.flatnonzero(_may_round_twice(total)):
        result[lane] = _fused(float(a[lane]), float(b[lane]), float(c[lane]), 32)
    return result


def _may_round_twice(total: Lanes) -> Lanes:
    """Where a double could be a tie between two singles: the only place where its own rounding matters.

    The product of two singles is exact in double, so that only the sum was rounded.
    """
    halfway = (total.view(np.uint64) & np.uint64(0x1FFF_FFFF)) == np.uint64(0x1000_0000)
    return np.isfinite(total) & (halfway | (np.abs(total) < 2.0**-126))
