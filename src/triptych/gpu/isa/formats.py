"""Conversion to and from formats that only tensor cores compute with, and packing (PTX manual, 9.7.9.21, 9.7.9.22)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.modifiers import clamp_negative, from_single, to_single
from triptych.gpu.isa.narrow import halves_of, join_halves
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F16, F32, S32, U16, U32, packed_element

_cvt = partial(row, section="9.7.9.21", pipe=Pipe.CONVERT, wider_registers=True)
_TO_NARROW = {"rnd": "rn rz"}
_BYTES = "e4m3x2 e5m2x2"


@dataclass(frozen=True, slots=True)
class _ByteFormat:
    """A float of 8 bits: digits of the significand, its exponent's bias, and the largest number, as its bits."""

    digits: int
    bias: int
    largest: int


_FORMATS = {"e4m3x2": _ByteFormat(4, 7, 0x7E), "e5m2x2": _ByteFormat(3, 15, 0x7B)}
_NAN = 0x7F
"""Not a number, in both formats."""


# --- f32 with fewer digits ----------------------------------------------------------------------------------------

_DROPPED = 13
"""A tf32 is a single whose low 13 bits are 0."""
_INFINITY = 0x7F80_0000
_LARGEST_TF32 = 0x7F7F_E000
_NAN_TF32 = 0x7FFF_E000


def _to_tf32(m: Machine[V], f: Form, a: V) -> V:
    bits = m.bitcast(F32, U32, a)
    if f.has("rna"):
        finite = m.compare(U32, "lt", m.bit_and(U32, bits, m.constant(U32, _INFINITY)), m.constant(U32, _INFINITY))
        half = m.select(U32, finite, m.constant(U32, 1 << (_DROPPED - 1)), m.constant(U32, 0))
        bits = m.add(U32, bits, half)
    elif f.has("rn"):
        last = m.bit_and(U32, m.shift_right(U32, bits, m.constant(U32, _DROPPED)), m.constant(U32, 1))
        bits = m.add(U32, bits, m.add(U32, last, m.constant(U32, (1 << (_DROPPED - 1)) - 1)))
    rounded = m.bit_and(U32, bits, m.constant(U32, -1 << _DROPPED))
    if f.has("satfinite"):
        size = m.bit_and(U32, rounded, m.constant(U32, 0x7FFF_FFFF))
        beyond = m.compare(U32, "gt", size, m.constant(U32, _LARGEST_TF32))
        rounded = m.select(U32, beyond, m.sub(U32, rounded, m.constant(U32, 1 << _DROPPED)), rounded)
    if f.has("rna"):
        return rounded
    if f.has("relu"):
        negative = m.compare(S32, "lt", rounded, m.constant(S32, 0))
        rounded = m.select(U32, negative, m.constant(U32, 0), rounded)
    return m.select(U32, m.compare(F32, "nan", a, a), m.constant(U32, _NAN_TF32), rounded)


@_cvt("cvt.rna{.satfinite}.tf32.f32 d:tf32, a:f32")
def cvt_tf32_away(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to tf32, ties away from zero; of what is not finite the low bits are cut."""
    return _to_tf32(m, f, a)


@_cvt("cvt.rnd{.satfinite}{.relu}.tf32.f32 d:tf32, a:f32", groups=_TO_NARROW)
def cvt_tf32(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to tf32."""
    return _to_tf32(m, f, a)


# --- 8 bits -------------------------------------------------------------------------------------------------------


def _to_byte(m: Machine[V], f: Form, fmt: _ByteFormat, a: V) -> V:
    """A single as the low 8 bits of a word, to nearest even; numbers beyond the range become its ends."""
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
    byte = m.select(U32, is_small, small, normal)
    largest = m.constant(U32, fmt.largest)
    beyond = m.compare(U32, "gt", byte, largest)
    byte = m.select(U32, beyond, largest, byte)
    sign = m.bit_and(U32, m.shift_right(U32, bits, m.constant(U32, 24)), m.constant(U32, 0x80))
    number = m.bit_or(U32, byte, sign)
    return m.select(U32, m.compare(F32, "nan", a, a), m.constant(U32, _NAN), number)


def _pack_bytes(m: Machine[V], f: Form, high: V, low: V) -> V:
    fmt = _FORMATS[f.types["dtype"].name]
    first, second = _to_byte(m, f, fmt, high), _to_byte(m, f, fmt, low)
    return m.resize(U32, U16, m.bit_or(U32, m.shift_left(U32, first, m.constant(U32, 8)), second))


@_cvt("cvt.rn.satfinite{.relu}.dtype.f32 d:dtype, a:f32, b:f32", types={"dtype": _BYTES})
def cvt_bytes(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper byte, b in the lower, rounded to 8 bits and clamped to the range."""
    return _pack_bytes(m, f, a, b)


@_cvt("cvt.rn.satfinite{.relu}.dtype.f16x2 d:dtype, a:f16x2", types={"dtype": _BYTES})
def cvt_halves_to_bytes(m: Machine[V], f: Form, a: V) -> V:
    """d = the halves of a, rounded to 8 bits and clamped to the range."""
    low, high = (to_single(m, F16, x) for x in halves_of(m, a))
    return _pack_bytes(m, f, high, low)


def _to_half(m: Machine[V], f: Form, fmt: _ByteFormat, byte: V) -> V:
    """The low 8 bits of a word as f16, exactly."""
    size = m.bit_and(U32, byte, m.constant(U32, 0x7F))
    sign = m.shift_left(U32, m.bit_and(U32, byte, m.constant(U32, 0x80)), m.constant(U32, 8))
    half = m.bit_or(U32, m.shift_left(U32, size, m.constant(U32, 11 - fmt.digits)), sign)
    single = to_single(m, F16, m.resize(U32, U16, half))
    if fmt.bias != 15:  # that of f16
        single = m.float_mul(F32, single, m.constant(F32, float(1 << (15 - fmt.bias))))
    nan = m.compare(U32, "gt", size, m.constant(U32, fmt.largest + (fmt.bias == 15)))  # e5m2 has an infinity too
    return m.select(U16, nan, m.constant(U16, 0x7FFF), from_single(m, F16, clamp_negative(m, f, single)))


@_cvt("cvt.rn{.relu}.f16x2.atype d:f16x2, a:atype", types={"atype": _BYTES})
def cvt_bytes_to_halves(m: Machine[V], f: Form, a: V) -> V:
    """d = the two bytes of a as halves, exactly."""
    fmt, word = _FORMATS[f.types["atype"].name], m.resize(U16, U32, a)
    low, high = (_to_half(m, f, fmt, m.shift_right(U32, word, m.constant(U32, shift))) for shift in (0, 8))
    return join_halves(m, low, high)


# --- 16 bits, never infinite --------------------------------------------------------------------------------------


def _finite(m: Machine[V], f: Form, a: V) -> V:
    """A single as 16 bits, numbers beyond the range become its ends."""
    t = packed_element(f.types["dtype"])
    bits = from_single(m, t, clamp_negative(m, f, a), f.get("rnd"))
    size = m.bit_and(U16, bits, m.constant(U16, 0x7FFF))
    infinity = 0x7C00 if t is F16 else 0x7F80
    largest = m.bit_or(U16, m.bit_and(U16, bits, m.constant(U16, 0x8000)), m.constant(U16, infinity - 1))
    return m.select(U16, m.compare(U16, "eq", size, m.constant(U16, infinity)), largest, bits)


@_cvt("cvt.rnd{.relu}.satfinite.dtype.f32 d:dtype, a:f32", types={"dtype": "f16 bf16"}, groups=_TO_NARROW)
def cvt_finite(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to 16 bits and clamped to the finite numbers."""
    return _finite(m, f, a)


@_cvt(
    "cvt.rnd{.relu}.satfinite.dtype.f32 d:dtype, a:f32, b:f32", types={"dtype": "f16x2 bf16x2"}, groups=_TO_NARROW
)  # fmt: skip
def cvt_finite_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper half, b in the lower, each rounded and clamped to the finite numbers."""
    return join_halves(m, _finite(m, f, b), _finite(m, f, a))


# --- Packing ------------------------------------------------------------------------------------------------------

_pack = partial(row, section="9.7.9.22", pipe=Pipe.CONVERT)


def _clamped_field(m: Machine[V], a: V, bits: int, *, signed: bool) -> V:
    """An s32 clamped to the range of an integer of `bits` bits, as these bits of a word."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    for bound, relation in ((low, "lt"), (high, "gt")):
        end = m.constant(S32, bound)
        a = m.select(S32, m.compare(S32, relation, a, end), end, a)
    return m.bit_and(U32, a, m.constant(U32, (1 << bits) - 1))


def _pack_fields(m: Machine[V], name: str, a: V, b: V) -> V:
    bits, signed = int(name[1:]), name[0] == "s"
    upper = m.shift_left(U32, _clamped_field(m, a, bits, signed=signed), m.constant(U32, bits))
    return m.bit_or(U32, upper, _clamped_field(m, b, bits, signed=signed))


@_pack("cvt.pack.sat.dtype.s32 d:u32, a:s32, b:s32", types={"dtype": "u16 s16"})
def cvt_pack_halves(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper half, b in the lower, each clamped."""
    return _pack_fields(m, f.types["dtype"].name, a, b)


def cvt_pack_fields(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = c moved up, a and b below it, each clamped to a field."""
    name = f.get("field") or f.types["dtype"].name
    return m.bit_or(U32, m.shift_left(U32, c, m.constant(U32, 2 * int(name[1:]))), _pack_fields(m, name, a, b))


_FIELD_OPERANDS = "d:u32, a:s32, b:s32, c:b32"
_pack(f"cvt.pack.sat.dtype.s32.b32 {_FIELD_OPERANDS}", types={"dtype": "u8 s8"})(cvt_pack_fields)
_pack(f"cvt.pack.sat.field.s32.b32 {_FIELD_OPERANDS}", groups={"field": "u2 s2 u4 s4"})(cvt_pack_fields)
