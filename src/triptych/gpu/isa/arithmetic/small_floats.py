"""Conversion to and from floats of 4 to 8 bits, which only tensor cores compute with (PTX manual, 9.7.9.21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from triptych.gpu.isa.arithmetic.modifiers import clamp_negative, from_single, to_single
from triptych.gpu.isa.arithmetic.narrow import halves_of, join_halves
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import BF16, F16, F32, TYPES, U16, U32, ScalarType, packed_element

_cvt = partial(row, section="9.7.9.21", pipe=Pipe.CONVERT)
_FAMILIES = "sm_100f sm_110f sm_120f"


@dataclass(frozen=True, slots=True)
class _Format:
    """A float of a few bits, of which a pair takes `2 · place` bits."""

    bits: int
    digits: int
    """Of the significand, the one before the point too."""
    bias: int
    largest: int
    """The bits of the largest number."""
    place: int = 8
    infinity: int | None = None
    nan: int | None = 0x7F
    """Its bits; None where all are numbers."""


_FORMATS: Mapping[str, _Format] = {
    "e4m3x2": _Format(8, 4, 7, 0x7E),
    "e5m2x2": _Format(8, 3, 15, 0x7B, infinity=0x7C),
    "e2m3x2": _Format(6, 4, 1, 0x1F, nan=None),
    "e3m2x2": _Format(6, 3, 3, 0x1F, nan=None),
    "e2m1x2": _Format(4, 2, 1, 0x7, place=4, nan=None),
}


def _to_code(m: Machine[V], f: Form, fmt: _Format, a: V) -> V:
    """A single as the low bits of a word, to nearest even; numbers beyond the range become its ends.

    What is no number becomes the format's, or where it has none, the largest.
    """
    bits = m.bitcast(F32, U32, clamp_negative(m, f, a))
    size = m.bit_and(U32, bits, m.constant(U32, 0x7FFF_FFFF))
    dropped, rebias = 24 - fmt.digits, (127 - fmt.bias) << (fmt.digits - 1)
    last = m.bit_and(U32, m.shift_right(U32, size, m.constant(U32, dropped)), m.constant(U32, 1))
    half = m.add(U32, last, m.constant(U32, (1 << (dropped - 1)) - 1))
    normal = m.sub(U32, m.shift_right(U32, m.add(U32, size, half), m.constant(U32, dropped)), m.constant(U32, rebias))
    # Subnormals: adding 2^23 times the smallest of them leaves their number in the sum's last digits.
    anchor = (127 + 1 - fmt.bias - (fmt.digits - 1) + 23) << 23
    sum_ = m.float_add(F32, m.bitcast(U32, F32, size), m.bitcast(U32, F32, m.constant(U32, anchor)))
    small = m.sub(U32, m.bitcast(F32, U32, sum_), m.constant(U32, anchor))
    is_small = m.compare(U32, "lt", size, m.constant(U32, (127 + 1 - fmt.bias) << 23))
    code = m.select(U32, is_small, small, normal)
    largest = m.constant(U32, fmt.largest)
    code = m.select(U32, m.compare(U32, "gt", code, largest), largest, code)
    sign = m.shift_right(U32, bits, m.constant(U32, 32 - fmt.bits))
    number = m.bit_or(U32, code, m.bit_and(U32, sign, m.constant(U32, 1 << (fmt.bits - 1))))
    return m.select(U32, m.compare(F32, "nan", a, a), m.constant(U32, fmt.nan or fmt.largest), number)


def _pack(m: Machine[V], f: Form, high: V, low: V) -> V:
    target = f.types["dtype"]
    fmt = _FORMATS[target.name]
    first, second = _to_code(m, f, fmt, high), _to_code(m, f, fmt, low)
    return _join(m, target, fmt.place, first, second)


def _join(m: Machine[V], target: ScalarType, place: int, high: V, low: V) -> V:
    word = m.bit_or(U32, m.shift_left(U32, high, m.constant(U32, place)), low)
    return m.resize(U32, TYPES[f"u{target.bits}"], word)


def cvt_singles(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper half, b in the lower, rounded to a few bits and clamped to the range."""
    return _pack(m, f, a, b)


def cvt_halves(m: Machine[V], f: Form, a: V) -> V:
    """d = the halves of a, rounded to a few bits and clamped to the range."""
    t = packed_element(f.types["atype"])
    low, high = (to_single(m, t, x) for x in halves_of(m, a))
    return _pack(m, f, high, low)


def _from_code(m: Machine[V], f: Form, fmt: _Format, code: V) -> V:
    """The low bits of a word as the 16-bit float of the same value."""
    magnitude = (1 << (fmt.bits - 1)) - 1
    size = m.bit_and(U32, code, m.constant(U32, magnitude))
    sign = m.bit_and(U32, m.shift_left(U32, code, m.constant(U32, 32 - fmt.bits)), m.constant(U32, 1 << 31))
    t = packed_element(f.types["dtype"])
    # As the digits of an f16, whose exponent has another bias.
    half = m.resize(U32, U16, m.shift_left(U32, size, m.constant(U32, 11 - fmt.digits)))
    single = m.float_mul(F32, to_single(m, F16, half), m.constant(F32, 2.0 ** (15 - fmt.bias)))
    signed = m.bitcast(U32, F32, m.bit_or(U32, m.bitcast(F32, U32, single), sign))
    number = from_single(m, t, clamp_negative(m, f, signed))
    if f.has("satfinite"):
        number = _made_finite(m, t, number)
    if fmt.nan is None:
        return number
    beyond = m.constant(U32, fmt.largest if fmt.infinity is None else fmt.infinity)
    return m.select(U16, m.compare(U32, "gt", size, beyond), m.constant(U16, 0x7FFF), number)


def _made_finite(m: Machine[V], t: ScalarType, bits: V) -> V:
    """An infinity as the largest number of its sign."""
    infinity = 0x7C00 if t is F16 else 0x7F80
    size = m.bit_and(U16, bits, m.constant(U16, 0x7FFF))
    return m.select(
        U16, m.compare(U16, "eq", size, m.constant(U16, infinity)), m.sub(U16, bits, m.constant(U16, 1)), bits
    )


def cvt_to_halves(m: Machine[V], f: Form, a: V) -> V:
    """d = the two small floats of a, exactly; an infinity becomes the largest number under `.satfinite`."""
    source = f.types["atype"]
    fmt, word = _FORMATS[source.name], m.resize(TYPES[f"u{source.bits}"], U32, a)
    places = (m.shift_right(U32, word, m.constant(U32, shift)) for shift in (0, fmt.place))
    low, high = (_from_code(m, f, fmt, place) for place in places)
    return join_halves(m, low, high)


_BYTES, _FEWER = "e4m3x2 e5m2x2", "e2m3x2 e3m2x2 e2m1x2"
for _targets, _need in ((_BYTES, "sm_89"), (_FEWER, _FAMILIES)):
    _cvt(
        "cvt.rn.satfinite{.relu}.dtype.f32 d:dtype, a:f32, b:f32", types={"dtype": _targets}, needs=_need
    )(cvt_singles)  # fmt: skip
    _cvt(
        "cvt.rn.satfinite{.relu}.dtype.atype d:dtype, a:atype",
        types={"dtype": _targets, "atype": "f16x2 bf16x2"},
        needs={"": _need, "bf16x2": _FAMILIES},
    )(cvt_halves)  # fmt: skip
    _cvt(
        "cvt.rn{.relu}.dtype.atype d:dtype, a:atype", types={"dtype": "f16x2", "atype": _targets}, needs=_need
    )(cvt_to_halves)  # fmt: skip
_cvt(
    "cvt.rn{.satfinite}{.relu}.dtype.atype d:dtype, a:atype",
    types={"dtype": "bf16x2", "atype": f"{_BYTES} {_FEWER}"}, needs=_FAMILIES,
)(cvt_to_halves)  # fmt: skip


# --- Powers of two ------------------------------------------------------------------------------------------------

_POWER_NAN, _POWER_LARGEST = 0xFF, 0xFE
_ROUNDINGS = {"rnd": "rz rp"}
_SMALLEST_POWER = 0x0040_0000
"""2^-127, which the code 0 stands for, as a single's bits."""


def _to_power(m: Machine[V], f: Form, a: V) -> V:
    """The exponent of a single's magnitude, as the low byte of a word."""
    size = m.bit_and(U32, m.bitcast(F32, U32, a), m.constant(U32, 0x7FFF_FFFF))
    if f.has("rp"):
        up = m.add(U32, size, m.constant(U32, 0x7F_FFFF))
        above = m.compare(U32, "gt", size, m.constant(U32, _SMALLEST_POWER))
        finite = m.compare(U32, "lt", size, m.constant(U32, 0x7F80_0000))
        size = m.select(U32, above, m.select(U32, finite, up, size), size)
    code = m.shift_right(U32, size, m.constant(U32, 23))
    if f.has("satfinite"):
        largest = m.constant(U32, _POWER_LARGEST)
        code = m.select(U32, m.compare(U32, "gt", code, largest), largest, code)
    return m.select(U32, m.compare(F32, "nan", a, a), m.constant(U32, _POWER_NAN), code)


@_cvt(
    "cvt.rnd{.satfinite}.dtype.f32 d:dtype, a:f32, b:f32",
    types={"dtype": "ue8m0x2"},
    groups=_ROUNDINGS,
    needs=_FAMILIES,
)
def cvt_singles_to_powers(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the powers of two of the magnitudes of a (above) and b; those beyond the range are NaN or the largest."""
    return _join(m, f.types["dtype"], 8, _to_power(m, f, a), _to_power(m, f, b))


@_cvt(
    "cvt.rnd{.satfinite}.dtype.bf16x2 d:dtype, a:bf16x2",
    types={"dtype": "ue8m0x2"},
    groups=_ROUNDINGS,
    needs=_FAMILIES,
)
def cvt_halves_to_powers(m: Machine[V], f: Form, a: V) -> V:
    """d = the powers of two of the magnitudes of a's halves; those beyond the range are NaN or the largest."""
    low, high = (_to_power(m, f, to_single(m, BF16, x)) for x in halves_of(m, a))
    return _join(m, f.types["dtype"], 8, high, low)


def _from_power(m: Machine[V], code: V) -> V:
    smallest = m.compare(U32, "eq", code, m.constant(U32, 0))
    nan = m.compare(U32, "eq", code, m.constant(U32, _POWER_NAN))
    bits = m.shift_left(U32, code, m.constant(U32, 7))
    bits = m.select(U32, smallest, m.constant(U32, _SMALLEST_POWER >> 16), bits)
    return m.resize(U32, U16, m.select(U32, nan, m.constant(U32, 0x7FFF), bits))


@_cvt("cvt.rn.bf16x2.ue8m0x2 d:bf16x2, a:ue8m0x2", needs=_FAMILIES)
def cvt_powers(m: Machine[V], f: Form, a: V) -> V:
    """d = the powers of two that the bytes of a are."""
    word = m.resize(U16, U32, a)
    low = m.bit_and(U32, word, m.constant(U32, 255))
    return join_halves(m, _from_power(m, low), _from_power(m, m.shift_right(U32, word, m.constant(U32, 8))))
