"""Floating point by integers: values are m · 2^e exactly, and rounding is written out for each mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import isqrt


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE format: bits in all, digits of the significand, exponent of the smallest subnormal."""

    bits: int
    digits: int
    least: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The bits of +∞."""
        return (self.sign - 1) >> (self.digits - 1) << (self.digits - 1)

    @property
    def smallest_normal(self) -> int:
        return 1 << (self.digits - 1)


FORMATS: Mapping[str, Format] = {
    "f16": Format(16, 11, -24),
    "bf16": Format(16, 8, -133),
    "f32": Format(32, 24, -149),
    "f64": Format(64, 53, -1074),
}


class Kind(Enum):
    NUMBER = 0
    INFINITE = 1
    NAN = 2


@dataclass(frozen=True, slots=True)
class Real:
    """A float taken apart: sign, and size · 2^exponent for a number."""

    kind: Kind
    negative: bool
    size: int = 0
    exponent: int = 0

    @property
    def is_nan(self) -> bool:
        return self.kind is Kind.NAN

    @property
    def is_infinite(self) -> bool:
        return self.kind is Kind.INFINITE

    @property
    def is_zero(self) -> bool:
        return self.kind is Kind.NUMBER and self.size == 0

    @property
    def signed(self) -> int:
        return -self.size if self.negative else self.size


NAN = Real(Kind.NAN, False)


def infinite(negative: bool) -> Real:
    return Real(Kind.INFINITE, negative)


def zero(negative: bool) -> Real:
    return Real(Kind.NUMBER, negative)


def number(signed: int, exponent: int) -> Real:
    """A number other than 0."""
    return Real(Kind.NUMBER, signed < 0, abs(signed), exponent)


@lru_cache(maxsize=1 << 14)
def decode(fmt: Format, bits: int) -> Real:
    negative, size = bool(bits & fmt.sign), bits & (fmt.sign - 1)
    if size > fmt.infinity:
        return Real(Kind.NAN, negative)
    if size == fmt.infinity:
        return infinite(negative)
    biased, fraction = size >> (fmt.digits - 1), size & (fmt.smallest_normal - 1)
    if biased == 0:
        return Real(Kind.NUMBER, negative, fraction, fmt.least)
    return Real(Kind.NUMBER, negative, fraction | fmt.smallest_normal, fmt.least + biased - 1)


def encode(fmt: Format, value: Real, mode: str = "rn") -> int | None:
    """The bits of a value rounded to the format; None for NaN."""
    if value.is_nan:
        return None
    sign = fmt.sign if value.negative else 0
    if value.is_infinite:
        return sign | fmt.infinity
    if value.size == 0:
        return sign
    quantum = max(value.exponent + value.size.bit_length() - fmt.digits, fmt.least)
    drop = quantum - value.exponent
    size, drop = (value.size, drop) if drop > 0 else (value.size << -drop, 0)
    units, rest = size >> drop, size & ((1 << drop) - 1)
    away = mode == ("rm" if value.negative else "rp")
    if mode == "rn":
        half = 1 << drop >> 1
        units += rest > half or (rest == half and rest > 0 and units & 1)
    else:
        units += away and rest > 0
    bits = ((quantum - fmt.least) << (fmt.digits - 1)) + units
    if bits >= fmt.infinity:
        bits = fmt.infinity - (mode != "rn" and not away)
    return sign | bits


def add(a: Real, b: Real, mode: str) -> Real:
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite and a.negative != b.negative):
        return NAN
    if a.is_infinite or b.is_infinite:
        return a if a.is_infinite else b
    exponent = min(a.exponent, b.exponent)
    total = (a.signed << (a.exponent - exponent)) + (b.signed << (b.exponent - exponent))
    if total:
        return number(total, exponent)
    if a.is_zero and b.is_zero and a.negative == b.negative:
        return a
    return zero(mode == "rm")


def multiply(a: Real, b: Real) -> Real:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_zero) or (a.is_zero and b.is_infinite):
        return NAN
    if a.is_infinite or b.is_infinite:
        return infinite(negative)
    return Real(Kind.NUMBER, negative, a.size * b.size, a.exponent + b.exponent)


def divide(a: Real, b: Real) -> Real:
    """The quotient to far more digits than any format has, its last digit odd where it is not exact."""
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite) or (a.is_zero and b.is_zero):
        return NAN
    if a.is_infinite or b.is_zero:
        return infinite(negative)
    if b.is_infinite or a.is_zero:
        return zero(negative)
    quotient, rest = divmod(a.size << 192, b.size)
    return Real(Kind.NUMBER, negative, quotient << 1 | (rest > 0), a.exponent - b.exponent - 193)


def square_root(a: Real) -> Real:
    """As `divide`."""
    if a.is_nan or (a.negative and not a.is_zero):
        return NAN
    if a.is_infinite or a.is_zero:
        return a
    exponent = a.exponent - 256 - (a.exponent & 1)
    size = a.size << (a.exponent - exponent)
    root = isqrt(size)
    return Real(Kind.NUMBER, False, root << 1 | (root * root != size), exponent // 2 - 1)


def round_integral(a: Real, mode: str) -> Real:
    """To a whole number by `rni`, `rzi`, `rmi` or `rpi`; a zero keeps its sign."""
    if a.kind is not Kind.NUMBER or a.exponent >= 0 or a.size == 0:
        return a
    whole, rest = divmod(a.size, 1 << -a.exponent)
    half = 1 << (-a.exponent - 1)
    if mode == "rni":
        whole += rest > half or (rest == half and whole & 1)
    else:
        whole += rest > 0 and mode == ("rmi" if a.negative else "rpi")
    return Real(Kind.NUMBER, a.negative, whole, 0)


def to_integer(a: Real) -> int:
    """A whole number as an integer."""
    return a.signed << a.exponent if a.exponent >= 0 else a.signed >> -a.exponent


def less(a: Real, b: Real) -> bool:
    """a < b for operands that are no NaN; zeros are equal."""
    if a.is_infinite or b.is_infinite:
        left, right = (((-1 if x.negative else 1) if x.is_infinite else 0) for x in (a, b))
        return left < right
    exponent = min(a.exponent, b.exponent)
    return a.signed << (a.exponent - exponent) < b.signed << (b.exponent - exponent)


def to_float(fmt: Format, bits: int) -> float:
    """The value as Python's float (every format here fits)."""
    value = decode(fmt, bits)
    if value.is_nan:
        return float("nan")
    if value.is_infinite:
        return float("-inf" if value.negative else "inf")
    size = float(value.size) * 2.0 ** max(value.exponent, -1000) * 2.0 ** min(value.exponent + 1000, 0)
    return -size if value.negative else size
