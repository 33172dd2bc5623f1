"""Conversion (PTX manual, 9.7.9.21): `cvt` between integers and floating point."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.modifiers import (
    clamp_negative,
    flush,
    flush_below,
    from_single,
    narrow_infinity,
    saturate,
    to_double,
    to_single,
)
from triptych.gpu.isa.arithmetic.rounding import directed_double, directed_single, double_to_single_odd, to_odd, two_sum
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import BF16, F32, F64, U16, U32, U64, ScalarType, packed_element

_cvt = partial(row, section="9.7.9.21", pipe=Pipe.CONVERT, wider_registers=True)
_INTEGERS = "u8 u16 u32 u64 s8 s16 s32 s64"
_INTEGRAL = {"integral": "rni rzi rmi rpi"}
_ROUNDINGS = {"rnd": "rn rz rm rp"}
_BRAIN = {"bf16": "sm_90"}
_TO_NARROW = {"rnd": "rn rz"}


@_cvt(
    "cvt{.sat}.dtype.atype d:dtype, a:atype",
    types={"dtype": _INTEGERS, "atype": _INTEGERS},
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


def _to_single_or_double(m: Machine[V], f: Form, t: ScalarType, a: V) -> tuple[ScalarType, V]:
    if t is F64:
        return F64, a
    return F32, flush(m, f, a) if t is F32 else to_single(m, t, a)


def cvt_to_integer(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a whole number and clamped; NaN becomes 0, or 2^(width - 1) if d or a has 64 bits."""
    target, source = f.types["dtype"], f.types["atype"]
    kind, value = _to_single_or_double(m, f, source, a)
    whole = m.float_to_integer(kind, target, m.round_integral(kind, f.get("integral"), value))
    if max(target.bits, source.bits) < 64:
        return whole
    nan = m.compare(kind, "nan", value, value)
    return m.select(target, nan, m.constant(target, 1 << (target.bits - 1)), whole)


for _modifiers, _sources in (("{.ftz}{.sat}", "f32"), ("{.sat}", "f16 f64"), ("", "bf16")):
    _cvt(
        f"cvt.integral{_modifiers}.dtype.atype d:dtype, a:atype",
        types={"dtype": _INTEGERS, "atype": _sources}, groups=_INTEGRAL, needs=_BRAIN,
    )(cvt_to_integer)  # fmt: skip


@_cvt(
    "cvt.rnd{.ftz}{.sat}.f32.atype d:type, a:atype",
    types={"atype": _INTEGERS}, groups=_ROUNDINGS,
)  # fmt: skip
def cvt_integer_to_single(m: Machine[V], f: Form, a: V) -> V:
    """d = the integer a, rounded."""
    source, mode = f.types["atype"], f.get("rnd")
    if mode == "rn":
        return saturate(m, f, m.integer_to_float(source, F32, a))
    return saturate(m, f, directed_single(m, mode, *_as_two_doubles(m, source, a)))


@_cvt(
    "cvt.rnd{.sat}.f64.atype d:type, a:atype",
    types={"atype": _INTEGERS}, groups=_ROUNDINGS,
)  # fmt: skip
def cvt_integer_to_double(m: Machine[V], f: Form, a: V) -> V:
    """d = the integer a, rounded."""
    source, mode = f.types["atype"], f.get("rnd")
    if mode == "rn" or source.bits <= 32:
        return saturate(m, f, m.integer_to_float(source, F64, a), F64)
    return saturate(m, f, directed_double(m, mode, *_as_two_doubles(m, source, a)), F64)


def _as_two_doubles(m: Machine[V], source: ScalarType, a: V) -> tuple[V, V]:
    """Any integer as the nearest double and the exact rest."""
    if source.bits <= 32:
        return m.integer_to_float(source, F64, a), m.constant(F64, 0.0)
    high = m.integer_to_float(source if source.is_signed else U32, F64, _high_part(m, source, a))
    scaled = m.float_mul(F64, high, m.constant(F64, 4294967296.0))
    return two_sum(m, scaled, m.integer_to_float(U32, F64, m.resize(source, U32, a)))


def _high_part(m: Machine[V], source: ScalarType, a: V) -> V:
    shifted = m.shift_right(source, a, m.constant(source, 32))
    return shifted if source.is_signed else m.resize(source, U32, shifted)


def cvt_integer_to_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = the integer a, rounded."""
    total, rest = _as_two_doubles(m, f.types["atype"], a)
    single = double_to_single_odd(m, to_odd(m, total, rest))
    return from_single(m, f.types["dtype"], saturate(m, f, single), f.get("rnd"))


for _modifiers, _name in (("{.sat}", "f16"), ("", "bf16")):
    _cvt(
        f"cvt.rnd{_modifiers}.dtype.atype d:dtype, a:atype",
        types={"dtype": _name, "atype": _INTEGERS}, groups=_ROUNDINGS, needs=_BRAIN,
    )(cvt_integer_to_narrow)  # fmt: skip


def cvt_to_single(m: Machine[V], f: Form, a: V) -> V:
    """d = a, exactly; under `.ftz` NaN becomes the canonical one."""
    single = flush(m, f, to_single(m, f.types["atype"], a))
    return saturate(m, f, m.canonical(F32, single) if f.has("ftz") else single)


_cvt("cvt{.ftz}{.sat}.f32.atype d:type, a:atype", types={"atype": "f32 f16"})(cvt_to_single)
_cvt(
    "cvt{.rnd}{.ftz}.f32.atype d:type, a:atype",
    types={"atype": "bf16"}, groups=_ROUNDINGS, needs={"": "sm_80", "ftz": "sm_90"},
)(cvt_to_single)  # fmt: skip


@_cvt("cvt{.ftz}{.sat}.f64.f32 d:f64, a:f32")
def cvt_single_to_double(m: Machine[V], f: Form, a: V) -> V:
    """d = a, exactly; under `.ftz` NaN becomes the canonical one of f32 first."""
    single = m.canonical(F32, m.flush(F32, a)) if f.has("ftz") else a
    return saturate(m, f, m.resize_float(F32, F64, single), F64)


def cvt_to_double(m: Machine[V], f: Form, a: V) -> V:
    """d = a, exactly."""
    source = f.types["atype"]
    wide = a if source is F64 else to_double(m, source, a)
    return saturate(m, f, wide, F64)


_cvt("cvt{.sat}.f64.atype d:type, a:atype", types={"atype": "f64 f16"})(cvt_to_double)
_cvt(
    "cvt{.rnd}.f64.atype d:type, a:atype", types={"atype": "bf16"}, groups=_ROUNDINGS, needs=_BRAIN
)(cvt_to_double)  # fmt: skip


def cvt_round_integral(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a whole number, of the same type."""
    t = f.type
    kind, value = _to_single_or_double(m, f, t, a)
    whole = saturate(m, f, m.round_integral(kind, f.get("integral"), value), kind)
    return whole if kind is F64 else from_single(m, t, whole)


for _name, _modifiers in (("f32", "{.ftz}{.sat}"), ("f64", "{.sat}"), ("f16", "{.sat}"), ("bf16", "")):
    _cvt(
        f"cvt.integral{_modifiers}.{_name}.{_name} d, a", groups=_INTEGRAL, needs=_BRAIN
    )(cvt_round_integral)  # fmt: skip


@_cvt("cvt.rnd{.ftz}{.sat}.f32.f64 d:f32, a:f64", groups=_ROUNDINGS)
def cvt_double_to_single(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to single precision; `.ftz` looks for underflow before it is rounded to a subnormal."""
    single = _rounded_single(m, f, a)
    if f.has("ftz"):
        larger = _rounded_single(m, f, m.float_mul(F64, a, m.constant(F64, _SCALE)))
        single = flush_below(m, single, 2.0**-126 * _SCALE, larger)
    return saturate(m, f, single)


_SCALE = 2.0**24
"""What makes normal numbers of all singles."""


def _rounded_single(m: Machine[V], f: Form, a: V) -> V:
    mode = f.get("rnd")
    return m.resize_float(F64, F32, a) if mode == "rn" else directed_single(m, mode, a, m.constant(F64, 0.0))


def cvt_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = a rounded to a 16-bit format; of an f64 that is NaN the upper digits stay."""
    source, target = f.types["atype"], f.types["dtype"]
    single = double_to_single_odd(m, a) if source is F64 else to_single(m, source, a)
    if source is F32 and target is BF16:  # a subnormal single is far below those of f16
        single = flush(m, f, single)
    narrow = from_single(m, target, clamp_negative(m, f, saturate(m, f, single)), f.get("rnd"))
    if source is not F64 or f.has("sat"):
        return narrow
    return m.select(U16, m.compare(F64, "nan", a, a), _upper_digits(m, target, m.bitcast(F64, U64, a)), narrow)


def _upper_digits(m: Machine[V], target: ScalarType, bits: V) -> V:
    """The bits of a double that is NaN as those of a quiet 16-bit one: its sign and its upper digits."""
    infinity = narrow_infinity(target)
    digits = 10 if infinity == 0x7C00 else 7
    shifted = m.resize(U64, U16, m.shift_right(U64, bits, m.constant(U64, 52 - digits)))
    sign = m.shift_left(U16, m.resize(U64, U16, m.shift_right(U64, bits, m.constant(U64, 63))), m.constant(U16, 15))
    quiet = m.constant(U16, infinity | 1 << (digits - 1))
    return m.bit_or(U16, m.bit_or(U16, m.bit_and(U16, shifted, m.constant(U16, (1 << digits) - 1)), quiet), sign)


for _modifiers, _targets, _sources, _modes, _need in (
    ("{.ftz}{.sat}", "f16", "f32", _ROUNDINGS, ""),
    ("{.ftz}", "bf16", "f32", _ROUNDINGS, "sm_80"),
    (".relu", "f16 bf16", "f32", _TO_NARROW, "sm_80"),
    ("{.sat}", "f16", "f64", _ROUNDINGS, ""),
    ("", "bf16", "f16 f64", _ROUNDINGS, "sm_90"),
    ("", "f16", "bf16", _ROUNDINGS, "sm_90"),
):
    _cvt(
        f"cvt.rnd{_modifiers}.dtype.atype d:dtype, a:atype",
        types={"dtype": _targets, "atype": _sources}, groups=_modes, needs=_need,
    )(cvt_narrow)  # fmt: skip


@_cvt(
    "cvt.rnd{.relu}.dtype.f32 d:dtype, a:f32, b:f32",
    types={"dtype": "f16x2 bf16x2"}, groups=_TO_NARROW, needs="sm_80",
)  # fmt: skip
def cvt_pack(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a in the upper half, b in the lower, each rounded."""
    t = packed_element(f.types["dtype"])
    high, low = (from_single(m, t, clamp_negative(m, f, x), f.get("rnd")) for x in (a, b))
    return m.bit_or(U32, m.resize(U16, U32, low), m.shift_left(U32, m.resize(U16, U32, high), m.constant(U32, 16)))
