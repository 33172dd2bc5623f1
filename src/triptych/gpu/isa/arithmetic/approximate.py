"""Approximate functions (PTX manual, 9.7.3): the manual states an error bound, not bits.

Each is computed more exactly than the manual asks, by the same primitives on every back end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from triptych.gpu.isa.arithmetic.modifiers import flush, from_single, to_single
from triptych.gpu.isa.arithmetic.narrow import either
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, F64, PRED, S32, S64, U32, U64, ScalarType


def _polynomial(m: Machine[V], t: ScalarType, x: V, coefficients: Sequence[float]) -> V:
    """Horner's scheme, highest coefficient first."""
    total = m.constant(t, coefficients[0])
    for coefficient in coefficients[1:]:
        total = m.fma(t, total, x, m.constant(t, coefficient))
    return total


def _widen(m: Machine[V], a: V) -> V:
    """A single as a double; its NaN ends up as the canonical one."""
    return m.canonical(F64, m.resize_float(F32, F64, a))


_EXP2 = [math.log(2) ** power / math.factorial(power) for power in range(7, -1, -1)]
"""2^x = Σ (x ln 2)^k / k!; to the 7th power the rest is below 2^-31 on [-1/2, 1/2]."""


def _exp2(m: Machine[V], a: V) -> V:
    high, low = m.constant(F32, 129.0), m.constant(F32, -160.0)
    clamped = m.select(F32, m.compare(F32, "gt", a, high), high, a)
    clamped = m.select(F32, m.compare(F32, "lt", clamped, low), low, clamped)
    whole = m.round_integral(F32, "rni", clamped)
    value = _polynomial(m, F32, m.float_sub(F32, clamped, whole), _EXP2)
    exponent = m.float_to_integer(F32, S32, whole)
    half = m.shift_right(S32, exponent, m.constant(S32, 1))
    for part in (half, m.sub(S32, exponent, half)):
        bits = m.shift_left(S32, m.add(S32, part, m.constant(S32, 127)), m.constant(S32, 23))
        value = m.float_mul(F32, value, m.bitcast(U32, F32, bits))
    return value


@row("ex2.approx{.ftz}.f32 d, a", section="9.7.3.21", pipe=Pipe.SPECIAL, flops=1)
def ex2(m: Machine[V], f: Form, a: V) -> V:
    """d = 2^a."""
    return flush(m, f, _exp2(m, flush(m, f, a)))


def ex2_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = 2^a."""

    def of_one(t: ScalarType, x: V) -> V:
        return from_single(m, t, flush(m, f, _exp2(m, flush(m, f, to_single(m, t, x)))))

    return either(m, f, of_one, a)


row("ex2.approx.type d, a", types="f16 f16x2", section="9.7.4.10", pipe=Pipe.SPECIAL, flops=1)(ex2_narrow)
row(
    "ex2.approx.ftz.type d, a", types="bf16 bf16x2", section="9.7.4.10", pipe=Pipe.SPECIAL, flops=1, needs="sm_90"
)(ex2_narrow)  # fmt: skip


_LOG_TERMS = [2 / math.log(2) / (2 * k + 1) for k in range(6, -1, -1)]
"""log2 m = (2 / ln 2) · Σ s^(2k+1) / (2k+1), s = (m - 1) / (m + 1), |s| ≤ 0.172: the rest is below 2^-38."""


@row("lg2.approx{.ftz}.f32 d, a", section="9.7.3.20", pipe=Pipe.SPECIAL, flops=1)
def lg2(m: Machine[V], f: Form, a: V) -> V:
    """d = log2 a."""
    a = flush(m, f, a)
    wide = _widen(m, a)
    bits = m.bitcast(F64, U64, wide)
    half_root = m.constant(U64, 0x3FE6_A09E_667F_3BCD)  # √½: mantissas end up in [√½, √2)
    exponent = m.shift_right(S64, m.sub(U64, bits, half_root), m.constant(S64, 52))
    mantissa = m.bitcast(U64, F64, m.sub(U64, bits, m.shift_left(U64, exponent, m.constant(U64, 52))))
    one = m.constant(F64, 1.0)
    s = m.float_div(F64, m.float_sub(F64, mantissa, one), m.float_add(F64, mantissa, one))
    series = m.float_mul(F64, s, _polynomial(m, F64, m.float_mul(F64, s, s), _LOG_TERMS))
    value = m.resize_float(F64, F32, m.float_add(F64, series, m.integer_to_float(S64, F64, exponent)))
    zero, infinity = m.constant(F32, 0.0), m.constant(F32, math.inf)
    value = m.select(F32, m.compare(F32, "eq", a, zero), m.constant(F32, -math.inf), value)
    value = m.select(F32, m.compare(F32, "eq", a, infinity), infinity, value)
    invalid = m.compare(F32, "lt", a, zero)
    value = m.select(F32, m.bit_or(PRED, invalid, m.compare(F32, "nan", a, a)), m.constant(F32, math.nan), value)
    return flush(m, f, value)


@row("rcp.approx{.ftz}.f32 d, a", section="9.7.3.13", pipe=Pipe.SPECIAL, flops=1)
def rcp(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / a."""
    return flush(m, f, m.float_div(F32, m.constant(F32, 1.0), flush(m, f, a)))


@row("sqrt.approx{.ftz}.f32 d, a", section="9.7.3.15", pipe=Pipe.SPECIAL, flops=1)
def sqrt(m: Machine[V], f: Form, a: V) -> V:
    """d = √a."""
    return flush(m, f, m.square_root(F32, flush(m, f, a)))


@row("rsqrt.approx{.ftz}.f32 d, a", section="9.7.3.16", pipe=Pipe.SPECIAL, flops=1)
def rsqrt(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / √a."""
    root = m.square_root(F64, _widen(m, flush(m, f, a)))
    return flush(m, f, m.canonical(F32, m.resize_float(F64, F32, m.float_div(F64, m.constant(F64, 1.0), root))))


@row("div.full{.ftz}.f32 d, a, b", section="9.7.3.8", pipe=Pipe.SPECIAL, flops=1)
def div_full(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a / b, over the whole range."""
    return flush(m, f, m.float_div(F32, flush(m, f, a), flush(m, f, b)))


@row("div.approx{.ftz}.f32 d, a, b", section="9.7.3.8", pipe=Pipe.SPECIAL, flops=1)
def div_approximate(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a · (1 / b), 1 / b being 0 for |b| above 2^126: 0, or NaN where a is infinite."""
    a, b = flush(m, f, a), flush(m, f, b)
    bits = m.bitcast(F32, U32, b)
    size, sign = (m.bit_and(U32, bits, m.constant(U32, mask)) for mask in (0x7FFF_FFFF, 0x8000_0000))
    above = m.compare(U32, "gt", size, m.constant(U32, (126 + 127) << 23))
    number = m.compare(U32, "le", size, m.constant(U32, 255 << 23))
    nothing = m.float_mul(F32, a, m.bitcast(U32, F32, sign))
    return flush(m, f, m.select(F32, m.bit_and(PRED, above, number), nothing, m.float_div(F32, a, b)))


_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(6, -1, -1)]
_PI_HALF_HIGH = float.fromhex("0x1.921fb54000000p+0")
"""π/2 to 29 bits: its product with a quadrant number below 2^24 is exact in double."""
_PI_HALF_LOW = math.pi / 2 - _PI_HALF_HIGH + 6.123233995736766e-17


def _circular(m: Machine[V], a: V, quadrant: int) -> V:
    """sin(a + quadrant · π/2); beyond |a| = 2^24, where the hardware's reduction is no better, something in [-1, 1]."""
    wide = _widen(m, a)
    turns = m.round_integral(F64, "rni", m.float_mul(F64, wide, m.constant(F64, 2 / math.pi)))
    minus = m.float_sub(F64, m.constant(F64, -0.0), turns)
    rest = m.fma(F64, minus, m.constant(F64, _PI_HALF_HIGH), wide)
    rest = m.fma(F64, minus, m.constant(F64, _PI_HALF_LOW), rest)
    square = m.float_mul(F64, rest, rest)
    lost = m.compare(F64, "gt", square, m.constant(F64, 1.0))
    rest, square = (m.select(F64, lost, m.constant(F64, 0.0), x) for x in (rest, square))
    sine = m.float_mul(F64, rest, _polynomial(m, F64, square, _SINE))
    cosine = _polynomial(m, F64, square, _COSINE)
    index = m.add(S32, m.float_to_integer(F64, S32, turns), m.constant(S32, quadrant))
    odd = m.compare(S32, "ne", m.bit_and(S32, index, m.constant(S32, 1)), m.constant(S32, 0))
    negative = m.compare(S32, "ne", m.bit_and(S32, index, m.constant(S32, 2)), m.constant(S32, 0))
    value = m.select(F64, odd, cosine, sine)
    value = m.select(F64, negative, m.float_sub(F64, m.constant(F64, -0.0), value), value)
    return m.canonical(F32, m.resize_float(F64, F32, value))


@row("sin.approx{.ftz}.f32 d, a", section="9.7.3.18", pipe=Pipe.SPECIAL, flops=1)
def sin(m: Machine[V], f: Form, a: V) -> V:
    """d = sin a."""
    a = flush(m, f, a)
    zero = m.compare(F32, "eq", a, m.constant(F32, 0.0))
    return flush(m, f, m.select(F32, zero, a, _circular(m, a, 0)))


@row("cos.approx{.ftz}.f32 d, a", section="9.7.3.19", pipe=Pipe.SPECIAL, flops=1)
def cos(m: Machine[V], f: Form, a: V) -> V:
    """d = cos a."""
    return flush(m, f, _circular(m, flush(m, f, a), 1))


def _tanh(m: Machine[V], a: V) -> V:
    """tanh a, as 1 - 2 / (1 + e^2a); small a by its series."""
    limit = m.constant(F32, 10.0)
    low = m.constant(F32, -10.0)
    inside = m.select(F32, m.compare(F32, "gt", a, limit), limit, a)
    inside = m.select(F32, m.compare(F32, "lt", inside, low), low, inside)
    power = _exp2(m, m.float_mul(F32, inside, m.constant(F32, 2 / math.log(2))))
    wide = _widen(m, power)
    one = m.constant(F64, 1.0)
    value = m.float_div(F64, m.float_sub(F64, wide, one), m.float_add(F64, wide, one))
    large = m.resize_float(F64, F32, value)
    square = m.float_mul(F32, a, a)
    small = m.float_mul(F32, a, _polynomial(m, F32, square, [-17 / 315, 2 / 15, -1 / 3, 1.0]))
    size = m.bitcast(U32, F32, m.bit_and(U32, m.bitcast(F32, U32, a), m.constant(U32, 0x7FFF_FFFF)))
    value = m.select(F32, m.compare(F32, "lt", size, m.constant(F32, 0.125)), small, large)
    return m.select(F32, m.compare(F32, "nan", a, a), m.constant(F32, math.nan), value)


@row("tanh.approx.f32 d, a", section="9.7.3.22", pipe=Pipe.SPECIAL, flops=1)
def tanh(m: Machine[V], f: Form, a: V) -> V:
    """d = tanh a."""
    return _tanh(m, a)


@row(
    "tanh.approx.type d, a", types="f16 f16x2 bf16 bf16x2", section="9.7.4.9", pipe=Pipe.SPECIAL, flops=1,
    needs=dict.fromkeys(("bf16", "bf16x2"), "sm_90"),
)  # fmt: skip
def tanh_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = tanh a."""

    def of_one(t: ScalarType, x: V) -> V:
        return from_single(m, t, _tanh(m, to_single(m, t, x)))

    return either(m, f, of_one, a)


# --- Doubles ------------------------------------------------------------------------------------------------------

_UPPER_HALF = 0xFFFF_FFFF_0000_0000


def _flush_double(m: Machine[V], a: V) -> V:
    """Subnormal doubles become zeros of the same sign."""
    bits = m.bitcast(F64, U64, a)
    exponent = m.bit_and(U64, bits, m.constant(U64, 0x7FF0_0000_0000_0000))
    sign = m.bit_and(U64, bits, m.constant(U64, 1 << 63))
    small = m.compare(U64, "eq", exponent, m.constant(U64, 0))
    return m.bitcast(U64, F64, m.select(U64, small, sign, bits))


def _by_upper_half(m: Machine[V], a: V, function: Callable[[V], V]) -> V:
    """A function of a double's upper 32 bits, cut to the upper 32 bits; subnormals are zeros."""
    half = m.constant(U64, _UPPER_HALF)
    upper = _flush_double(m, m.bitcast(U64, F64, m.bit_and(U64, m.bitcast(F64, U64, a), half)))
    exact = function(upper)  # NaN where a is not: its upper half may be infinite
    bits = m.bitcast(F64, U64, exact)
    value = _flush_double(m, m.bitcast(U64, F64, m.bit_and(U64, bits, half)))
    nan = m.bitcast(U64, F64, m.constant(U64, 0x7FFF_FFFF << 32))
    return m.select(F64, m.compare(F64, "nan", exact, exact), nan, value)


@row("rcp.approx.ftz.f64 d, a", section="9.7.3.14", pipe=Pipe.SPECIAL, flops=1)
def rcp_double(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / a, from the upper 32 bits of a to the upper 32 of d; the lower ones are 0."""
    return _by_upper_half(m, a, lambda x: m.float_div(F64, m.constant(F64, 1.0), x))


@row("rsqrt.approx.ftz.f64 d, a", section="9.7.3.17", pipe=Pipe.SPECIAL, flops=1)
def rsqrt_double(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / √a, from the upper 32 bits of a to the upper 32 of d; the lower ones are 0."""
    return _by_upper_half(m, a, lambda x: m.float_div(F64, m.constant(F64, 1.0), m.square_root(F64, x)))


@row("rsqrt.approx.f64 d, a", section="9.7.3.16", pipe=Pipe.SPECIAL, flops=1)
def rsqrt_double_fully(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / √a."""
    return m.float_div(F64, m.constant(F64, 1.0), m.square_root(F64, a))
