"""What modifiers do to a value (`.ftz`, `.sat`, `.relu`), and the single of the same value as a 16-bit float."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.rounding import single_to_bfloat, single_to_half
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.types import BF16, F16, F32, U16, U32, ScalarType


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


def flush_narrow(m: Machine[V], f: Form, t: ScalarType, a: V) -> V:
    """The bits of subnormal halves become those of zeros of the same sign under `.ftz`; bfloat16 has no `.ftz`."""
    if t is not F16 or not f.has("ftz"):
        return a
    small = m.compare(U16, "eq", m.bit_and(U16, a, m.constant(U16, 0x7C00)), m.constant(U16, 0))
    return m.select(U16, small, m.bit_and(U16, a, m.constant(U16, 0x8000)), a)


def saturate(m: Machine[V], f: Form, a: V, t: ScalarType = F32) -> V:
    """A single (or double) clamped to [0, 1] under `.sat`; NaN becomes 0."""
    if not f.has("sat"):
        return a
    zero, one = m.constant(t, 0.0), m.constant(t, 1.0)
    a = m.select(t, m.compare(t, "gt", a, zero), a, zero)
    return m.select(t, m.compare(t, "lt", a, one), a, one)


def clamp_negative(m: Machine[V], f: Form, a: V) -> V:
    """A single below 0 becomes 0 under `.relu`."""
    if not f.has("relu"):
        return a
    zero = m.constant(F32, 0.0)
    return m.select(F32, m.compare(F32, "lt", a, zero), zero, a)
