"""Conversion (PTX manual, 9.7.9.21): `cvt` between integers and floating point."""

from __future__ import annotations

from triptych.core.errors import UnsupportedInstruction
from triptych.gpu.isa.floating import flush, from_single, saturate, to_single
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.rounding import directed_single, double_to_single_odd, to_odd, two_sum
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, F64, U16, U32, ScalarType, packed_element

_INTEGERS = "u8 u16 u32 u64 s8 s16 s32 s64"
_FLOATS = "f16 bf16 f32 f64"
_INTEGRAL = "rni rzi rmi rpi"


@row(
    "cvt{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": _INTEGERS, "atype": _INTEGERS},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_integer(m: Machine[V], f: Form, a: V) -> V:
    """d = a at another width; clamped to the range under `.sat`, else cut."""
    source, target = f.types["atype"], f.types["dtype"]
    if f.has("sat"):
        low = -(1 << (target.bits - 1)) if target.is_signed else 0
        high = (1 << (target.bits - 1)) - 1 if target.is_signed else (1 << target.bits) - 1
        if source.is_signed and low > -(1 << (source.bits - 1)):
            bound = m.constant(source, low)
            a = m.select(source, m.compare(source, "lt", a, bound), bound, a)
        if high < (1 << (source.bits - source.is_signed)) - 1:
            bound = m.constant(source, high)
            a = m.select(source, m.compare(source, "gt", a, bound), bound, a)
    return m.resize(source, target, a)


def _to_single_or_double(m: Machine[V], t: ScalarType, a: V) -> tuple[ScalarType, V]:
    return (F64, a) if t is F64 else (F32, to_single(m, t, a))


@row(
    "cvt.integral{.ftz}{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": _INTEGERS, "atype": _FLOATS},
    groups={"integral": _INTEGRAL},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_to_integer(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a whole number and clamped to the range; NaN becomes 0."""
    kind, value = _to_single_or_double(m, f.types["atype"], a)
    if kind is F32:
        value = flush(m, f, value)
    return m.float_to_integer(kind, f.types["dtype"], m.round_integral(kind, f.get("integral"), value))


@row(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": "f32 f64", "atype": _INTEGERS},
    groups={"rnd": "rn rz rm rp"},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_from_integer(m: Machine[V], f: Form, a: V) -> V:
    """d = the integer a, rounded."""
    source, target = f.types["atype"], f.types["dtype"]
    mode = f.get("rnd")
    if mode == "rn" or (target is F64 and source.bits <= 32):
        return (
            saturate(m, f, m.integer_to_float(source, target, a))
            if target is F32
            else m.integer_to_float(source, target, a)
        )
    if target is F64:
        raise UnsupportedInstruction(f"cvt.{mode}.f64.{source} is not supported: only .rn for 64-bit integers to f64")
    return saturate(m, f, directed_single(m, mode, *_as_two_doubles(m, source, a)))


def _as_two_doubles(m: Machine[V], source: ScalarType, a: V) -> tuple[V, V]:
    """Any integer as the nearest double and the exact rest."""
    if source.bits <= 32:
        return m.integer_to_float(source, F64, a), m.constant(F64, 0.0)
    high = m.integer_to_float(source if source.is_signed else U32, F64, _high_part(m, source, a))
    scaled = m.float_mul(F64, high, m.constant(F64, 4294967296.0))
    return two_sum(m, scaled, m.integer_to_float(U32, F64, m.resize(source, U32, a)))


@row(
    "cvt.rnd{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": "f16 bf16", "atype": _INTEGERS},
    groups={"rnd": "rn rz"},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_from_integer_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = the integer a, rounded."""
    total, rest = _as_two_doubles(m, f.types["atype"], a)
    single = double_to_single_odd(m, to_odd(m, total, rest))
    return from_single(m, f.types["dtype"], saturate(m, f, single), f.get("rnd"))


def _high_part(m: Machine[V], source: ScalarType, a: V) -> V:
    shifted = m.shift_right(source, a, m.constant(source, 32))
    return shifted if source.is_signed else m.resize(source, U32, shifted)


@row(
    "cvt{.ftz}.dtype.atype d:dtype, a:atype",
    types={"dtype": "f32 f64", "atype": _FLOATS},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_widen(m: Machine[V], f: Form, a: V) -> V:
    """d = a, exactly, in a wider format."""
    source, target = f.types["atype"], f.types["dtype"]
    if source is target:
        return flush(m, f, a) if target is F32 else a
    single = flush(m, f, to_single(m, source, a))
    return single if target is F32 else m.resize_float(F32, F64, single)


@row("cvt{.ftz}.sat.f32.atype d:f32, a:atype", types={"atype": "f32 f16 bf16"}, section="9.7.9.21", pipe=Pipe.CONVERT)
def cvt_saturate(m: Machine[V], f: Form, a: V) -> V:
    """d = a clamped to [0, 1]; NaN becomes 0."""
    return saturate(m, f, flush(m, f, to_single(m, f.types["atype"], a)))


@row(
    "cvt.integral{.ftz}{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": _FLOATS, "atype": _FLOATS},
    groups={"integral": _INTEGRAL},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_round_integral(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a whole number, of the same type."""
    source = f.types["atype"]
    kind, value = _to_single_or_double(m, source, a)
    value = m.round_integral(kind, f.get("integral"), flush(m, f, value) if kind is F32 else value)
    return value if kind is F64 else from_single(m, source, saturate(m, f, value))


@row("cvt.rnd{.ftz}{.sat}.f32.f64 d:f32, a:f64", groups={"rnd": "rn rz rm rp"}, section="9.7.9.21", pipe=Pipe.CONVERT)
def cvt_double_to_single(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to single precision."""
    mode = f.get("rnd")
    narrow = m.resize_float(F64, F32, a) if mode == "rn" else directed_single(m, mode, a, m.constant(F64, 0.0))
    return saturate(m, f, flush(m, f, narrow))


@row(
    "cvt.rnd{.ftz}{.sat}{.relu}.dtype.atype d:dtype, a:atype",
    types={"dtype": "f16 bf16", "atype": "f32 f64 f16 bf16"},
    groups={"rnd": "rn rz"},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a 16-bit format."""
    source, target = f.types["atype"], f.types["dtype"]
    single = double_to_single_odd(m, a) if source is F64 else flush(m, f, to_single(m, source, a))
    return from_single(m, target, _relu(m, f, saturate(m, f, single)), f.get("rnd"))


def _relu(m: Machine[V], f: Form, a: V) -> V:
    if not f.has("relu"):
        return a
    zero = m.constant(F32, 0.0)
    return m.select(F32, m.compare(F32, "lt", a, zero), zero, a)


@row(
    "cvt.rnd{.ftz}{.relu}.dtype.f32 d:dtype, a:f32, b:f32",
    types={"dtype": "f16x2 bf16x2"},
    groups={"rnd": "rn rz"},
    section="9.7.9.21",
    pipe=Pipe.CONVERT,
)
def cvt_pack(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper half, b in the lower, each rounded."""
    t = packed_element(f.types["dtype"])
    high, low = (from_single(m, t, _relu(m, f, x), f.get("rnd")) for x in (a, b))
    return m.bit_or(U32, m.resize(U16, U32, low), m.shift_left(U32, m.resize(U16, U32, high), m.constant(U32, 16)))
