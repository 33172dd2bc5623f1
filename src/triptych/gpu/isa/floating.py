"""Floating-point arithmetic: f32 and f64 (PTX manual, 9.7.3), f16 and bf16 (9.7.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.rounding import (
    directed_single,
    double_to_single_odd,
    single_to_bfloat,
    single_to_half,
    to_odd,
    two_sum,
)
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import BF16, F16, F32, F64, U16, U32, U64, ScalarType, packed_element

_ROUNDINGS = {"rnd": "rn rz rm rp"}
_NARROW = "f16 bf16"
_PACKED = "f16x2 bf16x2"


# --- shared by the rows below -------------------------------------------------------------------------------------


def to_single(m: Machine[V], t: ScalarType, a: V) -> V:
    """f16 or bf16 bits as the single of the same value; f32 as it is."""
    if t is F16:
        return m.resize_float(F16, F32, a)
    if t is BF16:
        return m.bitcast(U32, F32, m.shift_left(U32, m.resize(U16, U32, a), m.constant(U32, 16)))
    return a


def from_single(m: Machine[V], t: ScalarType, a: V, mode: str = "rn") -> V:
    """A single rounded to f16 or bf16 bits; f32 as it is."""
    if t is F16:
        return single_to_half(m, a, mode)
    return single_to_bfloat(m, a, mode) if t is BF16 else a


def flush(m: Machine[V], f: Form, a: V) -> V:
    """Subnormal singles become zeros of the same sign under `.ftz`."""
    if not f.has("ftz"):
        return a
    bits = m.bitcast(F32, U32, a)
    small = m.compare(U32, "eq", m.bit_and(U32, bits, m.constant(U32, 0x7F80_0000)), m.constant(U32, 0))
    sign = m.bit_and(U32, bits, m.constant(U32, 0x8000_0000))
    return m.bitcast(U32, F32, m.select(U32, small, sign, bits))


def saturate(m: Machine[V], f: Form, a: V) -> V:
    """A single clamped to [0, 1] under `.sat`; NaN becomes 0."""
    if not f.has("sat"):
        return a
    zero, one = m.constant(F32, 0.0), m.constant(F32, 1.0)
    a = m.select(F32, m.compare(F32, "gt", a, zero), a, zero)
    return m.select(F32, m.compare(F32, "lt", a, one), a, one)


def _finish(m: Machine[V], f: Form, a: V) -> V:
    return saturate(m, f, flush(m, f, a))


def _directed(f: Form) -> str | None:
    mode = f.get("rnd", "rn")
    return None if mode == "rn" else mode


def _wide(m: Machine[V], a: V) -> V:
    return m.resize_float(F32, F64, a)


# --- f32 ----------------------------------------------------------------------------------------------------------


@row("add{.rnd}{.ftz}{.sat}.f32 d, a, b", groups=_ROUNDINGS, section="9.7.3.3", pipe=Pipe.FP32, flops=1)
def add_single(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b."""
    a, b = flush(m, f, a), flush(m, f, b)
    mode = _directed(f)
    total = m.float_add(F32, a, b) if mode is None else directed_single(m, mode, *two_sum(m, _wide(m, a), _wide(m, b)))
    return _finish(m, f, total)


@row("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", groups=_ROUNDINGS, section="9.7.3.4", pipe=Pipe.FP32, flops=1)
def sub_single(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    a, b = flush(m, f, a), flush(m, f, b)
    mode = _directed(f)
    if mode is None:
        return _finish(m, f, m.float_sub(F32, a, b))
    minus = m.float_sub(F64, m.constant(F64, -0.0), _wide(m, b))
    return _finish(m, f, directed_single(m, mode, *two_sum(m, _wide(m, a), minus)))


@row("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", groups=_ROUNDINGS, section="9.7.3.5", pipe=Pipe.FP32, flops=1)
def mul_single(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b."""
    a, b = flush(m, f, a), flush(m, f, b)
    mode = _directed(f)
    if mode is None:
        return _finish(m, f, m.float_mul(F32, a, b))
    product = m.float_mul(F64, _wide(m, a), _wide(m, b))
    return _finish(m, f, directed_single(m, mode, product, m.constant(F64, 0.0)))


@row("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", groups=_ROUNDINGS, section="9.7.3.6", pipe=Pipe.FP32, flops=2)
def fma_single(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    a, b, c = flush(m, f, a), flush(m, f, b), flush(m, f, c)
    mode = _directed(f)
    if mode is None:
        return _finish(m, f, m.fma(F32, a, b, c))
    product = m.float_mul(F64, _wide(m, a), _wide(m, b))
    return _finish(m, f, directed_single(m, mode, *two_sum(m, product, _wide(m, c))))


@row("mad{.rnd}{.ftz}{.sat}.f32 d, a, b, c", groups=_ROUNDINGS, section="9.7.3.7", pipe=Pipe.FP32, flops=2)
def mad_single(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, as fma."""
    return fma_single(m, f, a, b, c)


# --- f64 ----------------------------------------------------------------------------------------------------------


@row("add{.rn}.f64 d, a, b", section="9.7.3.3", pipe=Pipe.FP64, flops=1)
def add_double(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b."""
    return m.float_add(F64, a, b)


@row("sub{.rn}.f64 d, a, b", section="9.7.3.4", pipe=Pipe.FP64, flops=1)
def sub_double(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    return m.float_sub(F64, a, b)


@row("mul{.rn}.f64 d, a, b", section="9.7.3.5", pipe=Pipe.FP64, flops=1)
def mul_double(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b."""
    return m.float_mul(F64, a, b)


@row("fma.rn.f64 d, a, b, c", section="9.7.3.6", pipe=Pipe.FP64, flops=2)
def fma_double(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    return m.fma(F64, a, b, c)


@row("div.rn.f64 d, a, b", section="9.7.3.8", pipe=Pipe.FP64, flops=1)
def div_double(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a / b."""
    return m.float_div(F64, a, b)


@row("rcp.rn.f64 d, a", section="9.7.3.13", pipe=Pipe.FP64, flops=1)
def rcp_double(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / a."""
    return m.float_div(F64, m.constant(F64, 1.0), a)


@row("sqrt.rn.f64 d, a", section="9.7.3.15", pipe=Pipe.FP64, flops=1)
def sqrt_double(m: Machine[V], f: Form, a: V) -> V:
    """d = √a."""
    return m.square_root(F64, a)


# --- both ---------------------------------------------------------------------------------------------------------


@row("div.rn{.ftz}.f32 d, a, b", section="9.7.3.8", pipe=Pipe.SPECIAL, flops=1)
def div_single(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a / b, to nearest even."""
    return flush(m, f, m.float_div(F32, flush(m, f, a), flush(m, f, b)))


@row("rcp.rn{.ftz}.f32 d, a", section="9.7.3.13", pipe=Pipe.SPECIAL, flops=1)
def rcp_single(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / a, to nearest even."""
    return flush(m, f, m.float_div(F32, m.constant(F32, 1.0), flush(m, f, a)))


@row("sqrt.rn{.ftz}.f32 d, a", section="9.7.3.15", pipe=Pipe.SPECIAL, flops=1)
def sqrt_single(m: Machine[V], f: Form, a: V) -> V:
    """d = √a, to nearest even."""
    return flush(m, f, m.square_root(F32, flush(m, f, a)))


def _bits_of(t: ScalarType) -> ScalarType:
    return U64 if t is F64 else U32 if t is F32 else U16


def _with_bits(m: Machine[V], t: ScalarType, a: V, change: Callable[[ScalarType, V], V]) -> V:
    bits = _bits_of(t)
    if t.bits == 16:
        return change(bits, a)
    return m.bitcast(bits, t, change(bits, m.bitcast(t, bits, a)))


@row("abs{.ftz}.type d, a", types="f32 f64 f16 bf16", section="9.7.3.9", pipe=Pipe.FP32)
def abs_float(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|."""
    t = f.type
    value = _with_bits(m, t, a, lambda bits, x: m.bit_and(bits, x, m.constant(bits, (1 << (t.bits - 1)) - 1)))
    return flush(m, f, value) if t is F32 else value


@row("neg{.ftz}.type d, a", types="f32 f64 f16 bf16", section="9.7.3.10", pipe=Pipe.FP32)
def neg_float(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    t = f.type
    value = _with_bits(m, t, a, lambda bits, x: m.bit_xor(bits, x, m.constant(bits, 1 << (t.bits - 1))))
    return flush(m, f, value) if t is F32 else value


@row("copysign.type d, a, b", types="f32 f64", section="9.7.3.2", pipe=Pipe.FP32)
def copysign(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the magnitude of b with the sign of a."""
    t, bits = f.type, _bits_of(f.type)
    sign, size = m.constant(bits, 1 << (t.bits - 1)), m.constant(bits, (1 << (t.bits - 1)) - 1)
    a, b = m.bitcast(t, bits, a), m.bitcast(t, bits, b)
    return m.bitcast(bits, t, m.bit_or(bits, m.bit_and(bits, a, sign), m.bit_and(bits, b, size)))


def pick_extreme(m: Machine[V], t: ScalarType, a: V, b: V, *, larger: bool, keep_nan: bool) -> V:
    """The larger or smaller: +0 above -0; NaN gives way to a number, unless it is to be kept (PTX manual, 9.7.3.11)."""
    bits = _bits_of(t)
    size = 1 << (t.bits - 1)
    a_bits, b_bits = m.bitcast(t, bits, a), m.bitcast(t, bits, b)
    zeros = m.bit_and(bits, m.bit_or(bits, a_bits, b_bits), m.constant(bits, size - 1))
    both_zero = m.compare(bits, "eq", zeros, m.constant(bits, 0))
    merged = m.bit_and(bits, a_bits, b_bits) if larger else m.bit_or(bits, a_bits, b_bits)
    picked = m.select(bits, m.compare(t, "gt" if larger else "lt", a, b), a_bits, b_bits)
    picked = m.select(bits, both_zero, merged, picked)
    a_nan, b_nan = m.compare(t, "nan", a, a), m.compare(t, "nan", b, b)
    canonical = m.constant(bits, 0x7FFF_FFFF if t is F32 else 0x7FF8_0000_0000_0000)
    if keep_nan:
        either = m.compare(t, "nan", a, b)
        return m.bitcast(bits, t, m.select(bits, either, canonical, picked))
    picked = m.select(bits, b_nan, a_bits, m.select(bits, a_nan, b_bits, picked))
    both = m.select(bits, a_nan, m.select(bits, b_nan, canonical, picked), picked)
    return m.bitcast(bits, t, both)


_EXTREMES = {"nan": "NaN"}


@row("min{.ftz}{.nan}.type d, a, b", types="f32 f64", groups=_EXTREMES, section="9.7.3.11", pipe=Pipe.FP32)
def min_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller number."""
    a, b = flush(m, f, a), flush(m, f, b)
    return pick_extreme(m, f.type, a, b, larger=False, keep_nan=f.has("NaN"))


@row("max{.ftz}{.nan}.type d, a, b", types="f32 f64", groups=_EXTREMES, section="9.7.3.12", pipe=Pipe.FP32)
def max_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger number."""
    a, b = flush(m, f, a), flush(m, f, b)
    return pick_extreme(m, f.type, a, b, larger=True, keep_nan=f.has("NaN"))


# --- f16 and bf16 -------------------------------------------------------------------------------------------------


def _narrow_op(m: Machine[V], f: Form, operation: Callable[..., V], t: ScalarType, *operands: V) -> V:
    """An operation in single precision, rounded once more: exact for add, sub and mul, since 24 ≥ 2 · 11 + 2."""
    singles = [to_single(m, t, a) for a in operands]
    return from_single(m, t, saturate(m, f, operation(F32, *singles)))


def fma_narrow(m: Machine[V], f: Form, t: ScalarType, a: V, b: V, c: V) -> V:
    """a × b + c in f16 or bf16, rounded once (through a double rounded to odd)."""
    wide = [m.resize_float(F32, F64, to_single(m, t, x)) for x in (a, b, c)]
    total, rest = two_sum(m, m.float_mul(F64, wide[0], wide[1]), wide[2])
    single = saturate(m, f, double_to_single_odd(m, to_odd(m, total, rest)))
    if f.has("relu"):
        single = m.select(F32, m.compare(F32, "lt", single, m.constant(F32, 0.0)), m.constant(F32, 0.0), single)
    return from_single(m, t, single)


def map_pair(m: Machine[V], operation: Callable[..., V], *operands: V) -> V:
    """A 16-bit operation on both halves of packed 32-bit values."""
    sixteen = m.constant(U32, 16)
    low = operation(*(m.resize(U32, U16, a) for a in operands))
    high = operation(*(m.resize(U32, U16, m.shift_right(U32, a, sixteen)) for a in operands))
    return m.bit_or(U32, m.resize(U16, U32, low), m.shift_left(U32, m.resize(U16, U32, high), sixteen))


def _either(m: Machine[V], f: Form, operation: Callable[..., V], *operands: V) -> V:
    t = packed_element(f.type)
    if t is f.type:
        return operation(t, *operands)
    return map_pair(m, partial(operation, t), *operands)


@row("add{.rn}{.ftz}{.sat}.type d, a, b", types=f"{_NARROW} {_PACKED}", section="9.7.4.1", pipe=Pipe.FP16, flops=1)
def add_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b."""
    return _either(m, f, partial(_narrow_op, m, f, m.float_add), a, b)


@row("sub{.rn}{.ftz}{.sat}.type d, a, b", types=f"{_NARROW} {_PACKED}", section="9.7.4.2", pipe=Pipe.FP16, flops=1)
def sub_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    return _either(m, f, partial(_narrow_op, m, f, m.float_sub), a, b)


@row("mul{.rn}{.ftz}{.sat}.type d, a, b", types=f"{_NARROW} {_PACKED}", section="9.7.4.3", pipe=Pipe.FP16, flops=1)
def mul_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b."""
    return _either(m, f, partial(_narrow_op, m, f, m.float_mul), a, b)


@row(
    "fma.rn{.ftz}{.sat}{.relu}.type d, a, b, c",
    types=f"{_NARROW} {_PACKED}",
    section="9.7.4.4",
    pipe=Pipe.FP16,
    flops=2,
)
def fma_half(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    return _either(m, f, partial(fma_narrow, m, f), a, b, c)


def _extreme_narrow(m: Machine[V], f: Form, a: V, b: V, *, larger: bool) -> V:
    def pick(t: ScalarType, x: V, y: V) -> V:
        singles = (to_single(m, t, x), to_single(m, t, y))
        return from_single(m, t, pick_extreme(m, F32, *singles, larger=larger, keep_nan=f.has("NaN")))

    return _either(m, f, pick, a, b)


@row("min{.ftz}{.nan}.type d, a, b", types=f"{_NARROW} {_PACKED}", groups=_EXTREMES, section="9.7.4.7", pipe=Pipe.FP16)
def min_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller number."""
    return _extreme_narrow(m, f, a, b, larger=False)


@row("max{.ftz}{.nan}.type d, a, b", types=f"{_NARROW} {_PACKED}", groups=_EXTREMES, section="9.7.4.8", pipe=Pipe.FP16)
def max_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger number."""
    return _extreme_narrow(m, f, a, b, larger=True)
