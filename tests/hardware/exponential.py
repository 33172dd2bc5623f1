"""How an H200 computes `ex2.approx.ftz.f32`, to the bit: found from recordings (`test_exponential.py`).

The triptych machine computes it otherwise, within the manual's bound: this is what it would have to do.

- The operand is cut towards zero to a multiple of 2^-23. If it is negative and no whole number then, its bits are
  inverted instead of negated: it is 2^-23 too small.
- Its whole part is the result's exponent: subnormal results are 0, too large ones are infinite. The first six bits of
  its fraction choose a row of `COEFFICIENTS`, the other 17 are t, a part of 2^17.
- The result's mantissa is c0 + c1 · t + c2 · t², added up exactly and cut, after somewhat less than half a unit was
  added. t² is less than exact: of the first 15 bits of t, what each contributes is cut to 15 digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.int64]

COEFFICIENTS = np.array((
    (2, 22713, 494), (365385, 22960, 501), (734749, 23210, 506), (1108132, 23463, 511), (1485585, 23718, 518),
    (1867144, 23977, 521), (2252859, 24238, 527), (2642776, 24502, 532), (3036939, 24768, 541), (3435392, 25038, 546),
    (3838183, 25311, 551), (4245364, 25586, 559), (4656976, 25865, 564), (5073071, 26147, 568), (5493698, 26431, 577),
    (5918904, 26719, 583), (6348740, 27010, 589), (6783257, 27304, 596), (7222504, 27602, 600), (7666537, 27902, 609),
    (8115403, 28206, 615), (8569159, 28513, 622), (9027853, 28824, 627), (9491544, 29138, 633), (9960284, 29455, 641),
    (10434128, 29776, 647), (10913132, 30100, 655), (11397353, 30428, 661), (11886845, 30759, 670),
    (12381668, 31094, 677), (12881881, 31432, 686), (13387538, 31775, 691), (13898702, 32121, 699),
    (14415434, 32471, 705), (14937792, 32824, 715), (15465836, 33182, 721), (15999632, 33543, 730),
    (16539241, 33908, 739), (17084726, 34277, 748), (17636149, 34651, 753), (18193578, 35028, 763),
    (18757077, 35409, 773), (19326713, 35795, 779), (19902550, 36185, 787), (20484658, 36579, 796),
    (21073105, 36977, 806), (21667960, 37380, 813), (22269292, 37787, 822), (22877174, 38198, 833),
    (23491673, 38614, 842), (24112864, 39035, 849), (24740821, 39460, 858), (25375615, 39889, 870),
    (26017321, 40324, 877), (26666014, 40763, 887), (27321772, 41207, 896), (27984671, 41655, 909),
    (28654787, 42109, 917), (29332201, 42568, 925), (30016991, 43031, 938), (30709239, 43500, 946),
    (31409025, 43973, 959), (32116430, 44452, 969), (32831539, 44936, 980),
))  # fmt: skip
"""By segment: c0 in quarters of a unit of the last place, c1 in four units, c2 in units, of 26, 16 and 10 bits."""
_ROUNDING = 57227
"""Parts of 2^17 of a unit: added before the sum is cut. Any from 57224 to 57227 gives the same results."""
_FRACTION, _OFFSET = 23, 17
"""Bits of the operand's fraction, and of those below the segment's."""
_SQUARED = 15
"""Bits of t that are squared, and of its square."""
INFINITY, NAN = 0x7F80_0000, 0x7FFF_FFFF
EXPONENTS = (0, 1, 64, *range(90, 137), 200, 254, 255)
"""Exponents' fields of the recorded operands; below field 103 results are 1, above 133 they are 0 or infinite."""


def operands() -> Iterator[NDArray[np.uint32]]:
    """8192 singles of each exponent and sign."""
    mantissas = np.arange(8192, dtype=np.uint32) * np.uint32(1021 << 3 | 1) & np.uint32((1 << 23) - 1)
    for sign in (0, 1):
        for exponent in EXPONENTS:
            yield np.uint32(sign << 31 | exponent << 23) | mantissas


def exponential(operand: NDArray[np.uint32]) -> Bits:
    """The bits of 2^x, of those of x."""
    raw = operand.astype(np.int64)
    field, significand = raw >> 23 & 255, raw & ((1 << 23) - 1) | 1 << 23
    shift = field - 127
    size = np.where(shift >= 0, significand << np.clip(shift, 0, 9), significand >> np.clip(-shift, 0, 62))
    fraction = (1 << _FRACTION) - 1
    place = np.where(raw >> 31 == 0, size, np.where(size & fraction == 0, -size, ~size))
    exponent = place >> _FRACTION
    result = (exponent + 127 << 23) + _mantissa(place & fraction)
    result = np.where(exponent < -126, 0, np.where(exponent > 127, INFINITY, result))
    return np.where(raw & 0x7FFF_FFFF > INFINITY, NAN, result)


def _mantissa(fraction: Bits) -> Bits:
    c0, c1, c2 = COEFFICIENTS[fraction >> _OFFSET].T
    t = fraction & ((1 << _OFFSET) - 1)
    return ((c0 << 15) + (c1 * t << 2) + (c2 * _square(t >> (_OFFSET - _SQUARED)) << 2) + _ROUNDING) >> _OFFSET


def _square(t: Bits) -> Bits:
    """t², of 15 bits: each bit, by itself and by all lower ones twice, cut."""
    total = np.zeros_like(t)
    for bit in range(_SQUARED):
        lower = (t & ((1 << bit) - 1)) << (bit + 1)
        total += np.where(t >> bit & 1 == 1, (lower >> _SQUARED) + (1 << 2 * bit >> _SQUARED), 0)
    return total
