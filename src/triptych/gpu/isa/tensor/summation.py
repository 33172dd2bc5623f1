"""How an H200's tensor cores add products up, to the bit: found from recordings (`tests/hardware/test_mma.py`).

All products of one instruction and C are added in one step, exactly but for a cut beforehand:

- A product is exact. Its exponent is the sum of its factors' exponents, even where its significand is 2 or more; of a
  subnormal factor it is the smallest one, so that the significand is below 1.
- Each product, and C, is cut towards zero to a multiple of 2^(e − `fraction`), with e the largest of all exponents, or
  -133 where they are lower (a zero has none). What remains is added exactly.
- The sum is rounded once: to f32 towards zero, to f16 to nearest even. A sum that becomes 0 is +0, whatever came in.
- Not finite: as IEEE 754 has it, in any order; a NaN is 0x7fffffff or 0x7fff. A sum of finite numbers beyond the range
  of D becomes an infinity, but nothing overflows on the way.

`wgmma` of 8-bit floats keeps 13 digits instead of 25, in its result too. `mma` of these is no instruction of its own on
this chip: they become f16, the products of elements 0, 1, 4, 5, 8, 9 … are added to 0, the others to the result of
that, and this to C as `add.f32` or `add.f16` does. `mma` of f64 is a chain of `fma` in the rounding mode, k ascending,
with the NaN that `fma` gives; whole numbers are exact. Neither is described here. `wmma` of tf32 is two instructions of
the chip, of four products each; where its C and D differ, it adds in f32, and what is to be f16 is rounded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
"""Raw bits of elements, whatever their width."""
Types = tuple[str, str, str, str]
"""Of D, A, B and C, by their names in PTX."""
_Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Format:
    """A floating-point format; `unused` low bits of its register are ignored."""

    exponent: int
    mantissa: int
    unused: int = 0
    has_infinity: bool = True

    @property
    def bias(self) -> int:
        """What is added to an exponent."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        """The bits of +∞, or where there is none, of the numbers of its exponent."""
        return ((1 << self.exponent) - 1) << self.mantissa


FORMATS: Mapping[str, Format] = {
    "f16": Format(5, 10),
    "bf16": Format(8, 7),
    "tf32": Format(8, 10, unused=13),
    "e4m3": Format(4, 3, has_infinity=False),
    "e5m2": Format(5, 2),
    "f32": Format(8, 23),
}
"""By the type's name in PTX."""
_NAN = {"f16": 0x7FFF, "f32": 0x7FFF_FFFF}
_RAW: Mapping[str, Any] = {"f16": np.uint16, "f32": np.uint32}
_FLOATS: Mapping[str, Any] = {"f16": np.float16, "f32": np.float32}
LEAST_EXPONENT = -133
"""No step reckons with a smaller one."""


@dataclass(frozen=True, slots=True)
class Summation:
    """How one kind of instruction adds up."""

    fraction: int
    """Digits that are kept below the largest exponent."""
    digits: int
    """Digits of the result's mantissa; of f32 the rest are 0."""
    to_nearest: bool = False
    """Whether the result is rounded to nearest even, not cut."""
    by_halves: bool = False
    """Whether 8-bit floats become f16, are added in two steps, and C is added at the end."""
    depth: int = 32
    """The most products of a step: more are added one step after the other."""

    @property
    def name(self) -> str:
        """Names all of it."""
        return f"{self.fraction}.{self.digits}.{self.to_nearest:d}.{self.by_halves:d}.{self.depth}"


SUMMATIONS: Mapping[tuple[str, str, str], Summation] = {
    ("mma", "f16", "f32"): Summation(25, 23),
    ("mma", "f16", "f16"): Summation(25, 10, to_nearest=True),
    ("mma", "bf16", "f32"): Summation(25, 23),
    ("mma", "tf32", "f32"): Summation(25, 23),
    ("mma", "8", "f32"): Summation(25, 23, by_halves=True),
    ("mma", "8", "f16"): Summation(25, 10, to_nearest=True, by_halves=True),
    ("wmma", "f16", "f32"): Summation(25, 23),
    ("wmma", "f16", "f16"): Summation(25, 10, to_nearest=True),
    ("wmma", "bf16", "f32"): Summation(25, 23),
    ("wmma", "tf32", "f32"): Summation(25, 23, depth=4),
    ("wgmma", "f16", "f32"): Summation(25, 23),
    ("wgmma", "f16", "f16"): Summation(25, 10, to_nearest=True),
    ("wgmma", "bf16", "f32"): Summation(25, 23),
    ("wgmma", "tf32", "f32"): Summation(25, 23),
    ("wgmma", "8", "f32"): Summation(13, 13),
    ("wgmma", "8", "f16"): Summation(13, 10, to_nearest=True),
}
"""By the instruction, the type of A and B (`8`: both 8-bit floats in any mixture), and the type that is added in."""


def accumulator_of(c: str, d: str) -> str:
    """The type that products are added in, by those of C and D."""
    return "f32" if "f32" in (c, d) else "f16"


def find_summation(mnemonic: str, types: Types) -> Summation | None:
    """The row of an instruction (`mma`, `wmma`, `wgmma`); None for f64 and integers, and for what has no such row."""
    kind_d, kind_a, _, kind_c = types
    return SUMMATIONS.get((mnemonic, "8" if kind_a in ("e4m3", "e5m2") else kind_a, accumulator_of(kind_c, kind_d)))


def multiply_accumulate(row: Summation, types: Types, a: Bits, b: Bits, c: Bits) -> Bits:
    """The sum over the last axis of a · b, and c, as one instruction of the hardware gives it.

    Args:
        row: How it adds up.
        types: Its types.
        a: Raw bits, (…, k), with k the depth of the instruction: a deeper sum is a chain of these.
        b: The same; the leading axes are broadcast.
        c: Raw bits, (…); zeros where `wgmma` leaves C out.

    Returns:
        The raw bits of D, (…).
    """
    kind_d, kind_a, kind_b, kind_c = types
    accumulator = accumulator_of(kind_c, kind_d)
    before = _converted(kind_c, accumulator, c)
    if row.by_halves:
        left, right = _as_f16(kind_a, a), _as_f16(kind_b, b)
        total = np.zeros_like(c)
        places = np.arange(a.shape[-1], dtype=np.int64)
        for part in (places[places % 4 < 2], places[places % 4 >= 2]):
            total = _step(row, ("f16", "f16", accumulator), left[..., part], right[..., part], total)
        return _add(accumulator, before, total)
    for start in range(0, a.shape[-1], row.depth):
        part = slice(start, start + row.depth)
        before = _step(row, (kind_a, kind_b, accumulator), a[..., part], b[..., part], before)
    return _converted(accumulator, kind_d, before)


def _step(row: Summation, types: tuple[str, str, str], a: Bits, b: Bits, c: Bits) -> Bits:
    """All products and C at once."""
    kind_a, kind_b, kind_d = types
    left, right, before = _Numbers.of(kind_a, a), _Numbers.of(kind_b, b), _Numbers.of(kind_d, c)
    product = left.times(right)
    largest = np.maximum(product.exponent.max(axis=-1), before.exponent)
    total = product.aligned(largest[..., None], row.fraction).sum(axis=-1) + before.aligned(largest, row.fraction)
    result = _rounded(row, FORMATS[kind_d], total, largest - row.fraction)
    if left.is_finite and right.is_finite and before.is_finite:
        return result
    with np.errstate(invalid="ignore"):
        special = (left.special * right.special).sum(axis=-1) + before.special
    infinity = FORMATS[kind_d].infinity
    sign = np.signbit(special).astype(np.uint64) << np.uint64(infinity.bit_length())
    result = np.where(np.isinf(special), np.uint64(infinity) | sign, result)
    return np.where(np.isnan(special), np.uint64(_NAN[kind_d]), result)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """significand · 2^(exponent − fraction), the significand with its sign."""

    significand: _Integers
    exponent: _Integers
    fraction: int
    special: NDArray[np.float64]
    """What is not finite as it is, other numbers as -1, 0 or 1."""
    is_finite: bool
    """Whether all are."""

    @classmethod
    def of(cls, name: str, bits: Bits) -> _Numbers:
        f = FORMATS[name]
        raw = bits.astype(np.int64) >> f.unused
        size = raw & ((1 << (f.exponent + f.mantissa)) - 1)
        negative = raw >> (f.exponent + f.mantissa) & 1 == 1
        field, mantissa = size >> f.mantissa, size & ((1 << f.mantissa) - 1)
        significand = np.where(field > 0, mantissa | 1 << f.mantissa, mantissa)
        is_nan = size > f.infinity if f.has_infinity else size == f.infinity | (1 << f.mantissa) - 1
        is_infinite = (size == f.infinity) & f.has_infinity
        special = np.select([is_nan, is_infinite], [np.nan, np.inf], np.minimum(significand, 1))
        return cls(
            np.where(negative, -significand, significand), np.maximum(field, 1) - f.bias, f.mantissa,
            np.where(negative, -special, special), not bool((is_nan | is_infinite).any()),
        )._without_zeros()  # fmt: skip

    def _without_zeros(self) -> _Numbers:
        """Zeros have the exponent that no step goes below: C is one, or has a larger one."""
        exponent = np.where(self.significand == 0, LEAST_EXPONENT, self.exponent)
        return _Numbers(self.significand, exponent, self.fraction, self.special, self.is_finite)

    def times(self, other: _Numbers) -> _Numbers:
        """Exact products; only their numbers count."""
        return _Numbers(
            self.significand * other.significand, self.exponent + other.exponent, self.fraction + other.fraction,
            self.special, is_finite=True,
        )._without_zeros()  # fmt: skip

    def aligned(self, largest: _Integers, fraction: int) -> _Integers:
        """As whole multiples of 2^(largest − fraction), cut towards zero."""
        size = _shifted(np.abs(self.significand), self.exponent - largest + (fraction - self.fraction))
        return np.where(self.significand < 0, -size, size)


def _shifted(size: _Integers, by: _Integers) -> _Integers:
    """A size times 2^by, cut."""
    return np.where(by >= 0, size << np.maximum(by, 0), size >> np.clip(-by, 0, 63))


def _rounded(row: Summation, f: Format, total: _Integers, unit: _Integers) -> Bits:
    """total · 2^unit in a format."""
    size = np.abs(total)
    length = np.frexp(size.astype(np.float64))[1].astype(np.int64)
    exponent = np.maximum(length - 1 + unit, 1 - f.bias)
    dropped = exponent - row.digits - unit
    if row.to_nearest:
        low = np.clip(dropped, 0, 62)
        last = size >> low & 1
        size = np.where(low > 0, size + ((np.int64(1) << low) >> 1) - 1 + last, size)
    kept = _shifted(size, -dropped) << (f.mantissa - row.digits)
    bits = np.minimum(kept + ((exponent + f.bias - 1) << f.mantissa), f.infinity)
    negative = (total < 0) & (kept > 0)
    return (np.where(kept > 0, bits, 0) | negative.astype(np.int64) << (f.exponent + f.mantissa)).astype(np.uint64)


# --- What stands in for `mma` of 8-bit floats ---------------------------------------------------------------------


def _as_f16(name: str, bits: Bits) -> Bits:
    """8-bit floats as f16 of the same values."""
    raw = bits.astype(np.uint16)
    if name == "e5m2":
        return (raw << 8).astype(np.uint64)
    halves = ((raw & 0x80) << 8 | (raw & 0x7F) << 7).view(np.float16) * np.float16(256)
    return np.where(raw & 0x7F == 0x7F, np.uint16(_NAN["f16"]), halves.view(np.uint16)).astype(np.uint64)


def _converted(source: str, target: str, bits: Bits) -> Bits:
    """f16 as f32 or back, to nearest even: where C and D differ."""
    if source == target:
        return bits
    numbers = bits.astype(_RAW[source]).view(_FLOATS[source])
    with np.errstate(over="ignore"):
        return _canonical(target, numbers.astype(_FLOATS[target]))


def _canonical(name: str, numbers: NDArray[Any]) -> Bits:
    bits = numbers.view(_RAW[name])
    return np.where(np.isnan(numbers), _RAW[name](_NAN[name]), bits).astype(np.uint64)


def _add(name: str, a: Bits, b: Bits) -> Bits:
    """A sum as `add` gives it."""
    left, right = (x.astype(_RAW[name]).view(_FLOATS[name]) for x in np.broadcast_arrays(a, b))
    with np.errstate(over="ignore", invalid="ignore"):
        return _canonical(name, left + right)
