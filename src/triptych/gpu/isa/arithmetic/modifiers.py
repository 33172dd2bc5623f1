"""What modifiers do to a value (`.ftz`, `.sat`, `.relu`), and the single of the same value as a 16-bit float."""

from __future__ import annotations

from triptych.gpu.isa.arithmetic.rounding import single_to_bfloat, single_to_half
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.types import BF16, F16, F32, F64, U16, U32, ScalarType


def to_single(m: Machine[V], t: ScalarType, a: V) -> V:
    """f16 or bf16 bits as the single of the same value; f32 as it is."""
    if t is F16:
        return m.resize_float(F16, F32, a)
    if t is BF16:
        return m.bitcast(U32, F32, m.shift_left(U32, m.resize(U16, U32, a), m.constant(U32, 16)))
    return a


def to_double(m: Machine[V], t: ScalarType, a: V) -> V:
    """f16 or bf16 bits, or a single, as the double of the same value."""
    return m.resize_float(F16, F64, a) if t is F16 else m.resize_float(F32, F64, to_single(m, t, a))


def narrow_infinity(t: ScalarType) -> int:
    """The bits of +∞ in f16 or bf16; those above are NaN."""
    return 0x7C00 if t is F16 else 0x7F80


def from_single(m: Machine[V], t: ScalarType, a: V, mode: str = "rn") -> V:
    """A single rounded to f16 or bf16 bits; f32 as it is."""
    if t is F16:
        return single_to_half(m, a, mode)
    return single_to_bfloat(m, a, mode) if t is BF16 else a


def flush(m: Machine[V], f: Form, a: V) -> V:
    """Subnormal singles become zeros of the same sign under `.ftz`."""
    return m.flush(F32, a) if f.has("ftz") else a


def flush_below(m: Machine[V], a: V, least: float, witness: V | None = None) -> V:
    """A single becomes the zero of its sign where its magnitude, or the witness's, is below `least`."""
    small = m.compare(F32, "lt", m.float_magnitude(F32, a if witness is None else witness), m.constant(F32, least))
    return m.select(F32, small, m.float_mul(F32, a, m.constant(F32, 0.0)), a)


_LEAST_HALF = 2.0**-14 * (1 - 2.0**-12)
"""What an f16 of unbounded exponent is rounded from, at the least, to reach the smallest normal one."""


def flush_before_half(m: Machine[V], f: Form, t: ScalarType, a: V) -> V:
    """A single that f16 is made of, under `.ftz`: the hardware looks for underflow before it rounds to a subnormal."""
    return flush_below(m, a, _LEAST_HALF) if t is F16 and f.has("ftz") else a


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
    """A single below 0, and -0, becomes +0 under `.relu`."""
    if not f.has("relu"):
        return a
    zero = m.constant(F32, 0.0)
    return m.select(F32, m.compare(F32, "le", a, zero), zero, a)
