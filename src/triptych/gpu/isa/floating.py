"""Floating-point arithmetic: f32 and f64 (PTX manual, 9.7.3)."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.modifiers import flush, saturate
from triptych.gpu.isa.rounding import directed_single, directed_sum
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, F64, U16, U32, U64, ScalarType

_ROUNDINGS = {"rnd": "rn rz rm rp"}


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
    total = m.float_add(F32, a, b) if mode is None else directed_sum(m, mode, _wide(m, a), _wide(m, b))
    return _finish(m, f, total)


@row("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", groups=_ROUNDINGS, section="9.7.3.4", pipe=Pipe.FP32, flops=1)
def sub_single(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    a, b = flush(m, f, a), flush(m, f, b)
    mode = _directed(f)
    if mode is None:
        return _finish(m, f, m.float_sub(F32, a, b))
    minus = m.float_sub(F64, m.constant(F64, -0.0), _wide(m, b))
    return _finish(m, f, directed_sum(m, mode, _wide(m, a), minus))


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
    return _finish(m, f, directed_sum(m, mode, product, _wide(m, c)))


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


def bits_of(t: ScalarType) -> ScalarType:
    """The unsigned integer of a float's width."""
    return U64 if t is F64 else U32 if t is F32 else U16


def change_sign(m: Machine[V], t: ScalarType, a: V, *, negate: bool) -> V:
    """A float without its sign, or with the opposite one (`negate`)."""
    bits, sign = bits_of(t), 1 << (t.bits - 1)
    whole = m.bitcast(t, bits, a)
    changed = (
        m.bit_xor(bits, whole, m.constant(bits, sign)) if negate else m.bit_and(bits, whole, m.constant(bits, sign - 1))
    )
    return m.bitcast(bits, t, changed)


@row("abs{.ftz}.f32 d, a", section="9.7.3.9", pipe=Pipe.FP32)
def abs_single(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|."""
    return flush(m, f, change_sign(m, f.type, a, negate=False))


@row("neg{.ftz}.f32 d, a", section="9.7.3.10", pipe=Pipe.FP32)
def neg_single(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    return flush(m, f, change_sign(m, f.type, a, negate=True))


@row("abs.f64 d, a", section="9.7.3.9", pipe=Pipe.FP64)
def abs_double(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|."""
    return change_sign(m, f.type, a, negate=False)


@row("neg.f64 d, a", section="9.7.3.10", pipe=Pipe.FP64)
def neg_double(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    return change_sign(m, f.type, a, negate=True)


@row("copysign.type d, a, b", types="f32 f64", section="9.7.3.2", pipe=Pipe.FP32)
def copysign(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the magnitude of b with the sign of a."""
    t, bits = f.type, bits_of(f.type)
    sign, size = m.constant(bits, 1 << (t.bits - 1)), m.constant(bits, (1 << (t.bits - 1)) - 1)
    a, b = m.bitcast(t, bits, a), m.bitcast(t, bits, b)
    return m.bitcast(bits, t, m.bit_or(bits, m.bit_and(bits, a, sign), m.bit_and(bits, b, size)))


def pick_extreme(m: Machine[V], t: ScalarType, a: V, b: V, *, larger: bool, keep_nan: bool) -> V:
    """The larger or smaller: +0 above -0; NaN gives way to a number, unless it is to be kept (PTX manual, 9.7.3.11)."""
    bits = bits_of(t)
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


EXTREMES = {"nan": "NaN"}
"""The modifier under which a NaN operand gives NaN."""


def min_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller number."""
    a, b = flush(m, f, a), flush(m, f, b)
    return pick_extreme(m, f.type, a, b, larger=False, keep_nan=f.has("NaN"))


def max_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger number."""
    a, b = flush(m, f, a), flush(m, f, b)
    return pick_extreme(m, f.type, a, b, larger=True, keep_nan=f.has("NaN"))


for _modifiers, _pipe in (("{.ftz}{.nan}.f32", Pipe.FP32), (".f64", Pipe.FP64)):
    row(f"min{_modifiers} d, a, b", groups=EXTREMES, section="9.7.3.11", pipe=_pipe)(min_float)
    row(f"max{_modifiers} d, a, b", groups=EXTREMES, section="9.7.3.12", pipe=_pipe)(max_float)
