"""Arithmetic rounded once by exact fractions: a · b + c, and every operation in the directed modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from triptych.gpu.isa.types import F32, ScalarType
from triptych.gpu.oracle.values import Lanes

_FORMATS = {32: (24, -149, 128), 64: (53, -1074, 1024)}
"""By width: digits of the significand, exponent of the smallest subnormal, exponent that overflows."""


_WHOLE: Mapping[str, Callable[[Fraction], int]] = {"rn": round, "rz": int, "rm": math.floor, "rp": math.ceil}


def round_fraction(value: Fraction, bits: int, mode: str = "rn") -> float:
    """A fraction other than 0 as a single or double: to nearest even, towards zero, down or up."""
    digits, least, overflow = _FORMATS[bits]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    quantum = max(exponent - digits + 1, least)
    units = abs(_WHOLE[mode](value / Fraction(2) ** quantum))
    sign = -1.0 if value < 0 else 1.0
    if units.bit_length() + quantum > overflow:
        infinite = mode in ("rn", "rm" if value < 0 else "rp")
        return sign * (math.inf if infinite else math.ldexp((1 << digits) - 1, overflow - digits))
    return sign * math.ldexp(units, quantum)


def _fused(a: float, b: float, c: float, bits: int) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return _sum_of_product(a, b, c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return round_fraction(exact, bits) if exact else a * b + c


def _sum_of_product(a: float, b: float, c: float) -> float:
    """a · b + c where one of them is infinite or no number: the product of two numbers is one, however large."""
    return c if math.isfinite(a) and math.isfinite(b) else a * b + c


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


def directed(t: ScalarType, operation: str, mode: str, operands: Sequence[Lanes]) -> Lanes:
    """`add sub mul div fma sqrt` of singles or doubles, rounded towards zero (`rz`), down (`rm`) or up (`rp`)."""
    lanes = zip(*(a.tolist() for a in operands), strict=True)
    results = [_directed(operation, mode, t.bits, *numbers) for numbers in lanes]
    return np.array(results, np.float64).astype(operands[0].dtype)


def _directed(operation: str, mode: str, bits: int, *numbers: float) -> float:
    if operation == "sub":
        return _directed("add", mode, bits, numbers[0], -numbers[1])
    nearest = _nearest(operation, numbers)
    if not all(map(math.isfinite, numbers)) or math.isnan(nearest) or (operation == "div" and numbers[1] == 0):
        return nearest
    exact = _exact(operation, numbers)
    if exact:
        return round_fraction(exact, bits, mode)
    if operation not in ("add", "fma"):
        return nearest
    left = numbers[0] * numbers[1] if operation == "fma" else numbers[0]
    positive = math.copysign(1.0, left) + math.copysign(1.0, numbers[-1]) == 2 and left == 0
    return -0.0 if mode == "rm" and not positive else nearest


def _root(value: Fraction) -> Fraction:
    """A square root to far more digits than any format has, its last digit odd where it is not exact."""
    shift = 1100
    size = value * 4**shift
    root = math.isqrt(int(size))
    return Fraction(2 * root + (root * root != size), 2 << shift)


def _nearest(operation: str, numbers: Sequence[float]) -> float:
    """What numpy makes of it in double precision: right for operands and results that are no numbers or infinite."""
    a, b, c = (np.float64(x) for x in (*numbers, 0.0, 0.0)[:3])
    match operation:
        case "add":
            return float(a + b)
        case "mul":
            return float(a * b)
        case "div":
            return float(a / b)
        case "fma" if np.isfinite(c):
            return float(a * b + c)
        case "fma":
            return _sum_of_product(float(a), float(b), float(c))
        case _:
            return float(np.sqrt(a))


def _exact(operation: str, numbers: Sequence[float]) -> Fraction:
    a, b, c = (Fraction(x) for x in (*numbers, 0.0, 0.0)[:3])
    match operation:
        case "add":
            return a + b
        case "mul":
            return a * b
        case "div":
            return a / b
        case "fma":
            return a * b + c
        case _:
            return _root(a)
