"""Conversion to tf32 and to finite 16-bit floats, and packing (PTX manual, 9.7.9.21, 9.7.9.22)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.modifiers import clamp_negative, from_single
from triptych.gpu.isa.arithmetic.narrow import join_halves
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F16, F32, S32, U16, U32, packed_element

_cvt = partial(row, section="9.7.9.21", pipe=Pipe.CONVERT)
_TO_NARROW = {"rnd": "rn rz"}

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


@_cvt("cvt.rna{.satfinite}.tf32.f32 d:tf32, a:f32", needs="sm_80")
def cvt_tf32_away(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to tf32, ties away from zero; of what is not finite the low bits are cut."""
    return _to_tf32(m, f, a)


@_cvt(
    "cvt.rnd{.satfinite}{.relu}.tf32.f32 d:tf32, a:f32",
    groups=_TO_NARROW, needs={"": "sm_90", "satfinite": "sm_100"},
)  # fmt: skip
def cvt_tf32(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to tf32."""
    return _to_tf32(m, f, a)


# --- 16 bits, never infinite --------------------------------------------------------------------------------------


def _finite(m: Machine[V], f: Form, a: V) -> V:
    """A single as 16 bits, numbers beyond the range become its ends."""
    t = packed_element(f.types["dtype"])
    bits = from_single(m, t, clamp_negative(m, f, a), f.get("rnd"))
    size = m.bit_and(U16, bits, m.constant(U16, 0x7FFF))
    infinity = 0x7C00 if t is F16 else 0x7F80
    largest = m.bit_or(U16, m.bit_and(U16, bits, m.constant(U16, 0x8000)), m.constant(U16, infinity - 1))
    return m.select(U16, m.compare(U16, "eq", size, m.constant(U16, infinity)), largest, bits)


@_cvt(
    "cvt.rnd{.relu}.satfinite.dtype.f32 d:dtype, a:f32",
    types={"dtype": "f16 bf16"}, groups=_TO_NARROW, needs={"bf16": "sm_80", "relu": "sm_80"},
    wider_registers=True,
)  # fmt: skip
def cvt_finite(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to 16 bits and clamped to the finite numbers."""
    return _finite(m, f, a)


@_cvt(
    "cvt.rnd{.relu}.satfinite.dtype.f32 d:dtype, a:f32, b:f32", types={"dtype": "f16x2 bf16x2"}, groups=_TO_NARROW,
    needs="sm_80", wider_registers=True,
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
    name = f.types["dtype"].name
    return m.bit_or(U32, m.shift_left(U32, c, m.constant(U32, 2 * int(name[1:]))), _pack_fields(m, name, a, b))


_pack(
    "cvt.pack.sat.dtype.s32.b32 d:u32, a:s32, b:s32, c:b32", types={"dtype": "u2 s2 u4 s4 u8 s8"}
)(cvt_pack_fields)  # fmt: skip
