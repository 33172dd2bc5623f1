"""Exact rounding built from round-to-nearest primitives: directed modes, and narrow formats without double rounding.

Everything rests on error-free transformations in double precision (Knuth's two-sum): a product of two singles, halves
or bfloat16s is exact there, and a sum is kept as a rounded value plus its exact error.
"""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.types import F16, F32, F64, PRED, U16, U32, U64, ScalarType


def two_sum(m: Machine[V], a: V, b: V) -> tuple[V, V]:
    """The double nearest to a + b, and the exact rest (0 where the sum is not finite)."""
    total = m.float_add(F64, a, b)
    of_b = m.float_sub(F64, total, a)
    of_a = m.float_sub(F64, total, of_b)
    rest = m.float_add(F64, m.float_sub(F64, a, of_a), m.float_sub(F64, b, of_b))
    zero = m.constant(F64, 0.0)
    finite = m.compare(F64, "eq", m.float_sub(F64, total, total), zero)
    return total, m.select(F64, finite, rest, zero)


def to_odd(m: Machine[V], total: V, rest: V) -> V:
    """Total + rest rounded to odd in double: a later rounding to fewer bits is then exact."""
    zero = m.constant(F64, 0.0)
    bits = m.bitcast(F64, U64, total)
    inexact = m.compare(F64, "ne", rest, zero)
    even = m.compare(U64, "eq", m.bit_and(U64, bits, m.constant(U64, 1)), m.constant(U64, 0))
    # Towards the rest: away from zero where rest and total have the same sign, towards zero otherwise.
    same_sign = m.compare(U64, "eq", _sign(m, rest), _sign(m, total))
    stepped = m.select(U64, same_sign, m.add(U64, bits, m.constant(U64, 1)), m.add(U64, bits, m.constant(U64, -1)))
    change = m.bit_and(PRED, inexact, even)
    return m.bitcast(U64, F64, m.select(U64, change, stepped, bits))


def _sign(m: Machine[V], a: V) -> V:
    return m.shift_right(U64, m.bitcast(F64, U64, a), m.constant(U64, 63))


def double_to_single_odd(m: Machine[V], a: V) -> V:
    """A double rounded to odd in single precision (for a later rounding to f16 or bf16)."""
    nearest = m.resize_float(F64, F32, a)
    back = m.resize_float(F32, F64, nearest)
    bits = m.bitcast(F32, U32, nearest)
    magnitude = m.constant(U64, (1 << 63) - 1)
    back_size = m.bit_and(U64, m.bitcast(F64, U64, back), magnitude)
    size = m.bit_and(U64, m.bitcast(F64, U64, a), magnitude)
    infinite = m.constant(U64, 0x7FF0_0000_0000_0000)
    number = m.compare(U64, "le", size, infinite)
    above = m.bit_and(PRED, number, m.compare(U64, "gt", back_size, size))
    inexact = m.bit_and(PRED, number, m.compare(U64, "ne", back_size, size))
    truncated = m.select(U32, above, m.sub(U32, bits, m.constant(U32, 1)), bits)
    odd = m.bit_or(U32, truncated, m.constant(U32, 1))
    return m.bitcast(U32, F32, m.select(U32, inexact, odd, truncated))


def single_to_bfloat(m: Machine[V], a: V, mode: str = "rn") -> V:
    """A single's bfloat16 bits, to nearest even (`rn`), towards zero (`rz`), down (`rm`) or up (`rp`); NaN: 0x7fff."""
    bits = m.bitcast(F32, U32, a)
    sixteen, low = m.constant(U32, 16), m.constant(U32, 0xFFFF)
    if mode == "rn":
        lowest = m.bit_and(U32, m.shift_right(U32, bits, sixteen), m.constant(U32, 1))
        bits = m.add(U32, bits, m.add(U32, lowest, m.constant(U32, 0x7FFF)))
    elif mode != "rz":
        away = m.compare(U32, "ge" if mode == "rm" else "lt", bits, m.constant(U32, 0x8000_0000))
        bits = m.select(U32, away, m.add(U32, bits, low), bits)
    high = m.shift_right(U32, bits, sixteen)
    nan = m.compare(F32, "nan", a, a)
    return m.resize(U32, U16, m.select(U32, nan, m.constant(U32, 0x7FFF), high))


def single_to_half(m: Machine[V], a: V, mode: str = "rn") -> V:
    """A single's f16 bits, rounded as `single_to_bfloat` says; NaN becomes 0x7fff."""
    half = m.resize_float(F32, F16, a)
    if mode != "rn":
        back = m.resize_float(F16, F32, half)
        too_high, too_low = m.compare(F32, "gt", back, a), m.compare(F32, "lt", back, a)
        negative = m.compare(F32, "lt", a, m.constant(F32, 0.0))
        half = _direct(m, U16, mode, half, too_high, too_low, negative)
    nan = m.compare(F32, "nan", a, a)
    return m.select(U16, nan, m.constant(U16, 0x7FFF), half)


def directed_single(m: Machine[V], mode: str, total: V, rest: V) -> V:
    """Total + rest rounded to single precision towards zero (`rz`), down (`rm`) or up (`rp`)."""
    nearest = m.resize_float(F64, F32, total)
    back = m.resize_float(F32, F64, nearest)
    zero = m.constant(F64, 0.0)
    # nearest - (total + rest): the difference of the first two is exact, since both are near each other.
    excess = m.float_sub(F64, m.float_sub(F64, back, total), rest)
    too_high, too_low = m.compare(F64, "gt", excess, zero), m.compare(F64, "lt", excess, zero)
    negative = m.compare(F64, "lt", total, zero)
    return m.bitcast(U32, F32, _direct(m, U32, mode, m.bitcast(F32, U32, nearest), too_high, too_low, negative))


def directed_double(m: Machine[V], mode: str, total: V, rest: V) -> V:
    """Total + rest rounded to double precision, total being finite and the double that is nearest to the sum."""
    zero = m.constant(F64, 0.0)
    too_high, too_low = m.compare(F64, "lt", rest, zero), m.compare(F64, "gt", rest, zero)
    negative = m.compare(F64, "lt", total, zero)
    return m.bitcast(U64, F64, _direct(m, U64, mode, m.bitcast(F64, U64, total), too_high, too_low, negative))


def _direct(m: Machine[V], t: ScalarType, mode: str, bits: V, too_high: V, too_low: V, negative: V) -> V:
    """The bits of a float that was rounded to nearest, moved to the neighbour that a directed mode asks for."""
    if mode == "rm":
        return _neighbour(m, t, bits, too_high, upwards=False)
    if mode == "rp":
        return _neighbour(m, t, bits, too_low, upwards=True)
    positive = m.bit_xor(PRED, negative, m.constant(PRED, 1))
    down = _neighbour(m, t, bits, m.bit_and(PRED, too_high, positive), upwards=False)
    return _neighbour(m, t, down, m.bit_and(PRED, too_low, negative), upwards=True)


def _neighbour(m: Machine[V], t: ScalarType, bits: V, where: V, *, upwards: bool) -> V:
    """The bits of the next float upwards (or downwards) where asked, the same elsewhere."""
    one, sign = m.constant(t, 1), m.constant(t, 1 << (t.bits - 1))
    negative = m.compare(t, "ge", bits, sign)
    zero = m.compare(t, "eq", m.bit_and(t, bits, m.constant(t, (1 << (t.bits - 1)) - 1)), m.constant(t, 0))
    away, towards = m.add(t, bits, one), m.sub(t, bits, one)
    moved = m.select(t, negative, *((towards, away) if upwards else (away, towards)))
    moved = m.select(t, zero, one if upwards else m.constant(t, (1 << (t.bits - 1)) + 1), moved)
    return m.select(t, where, moved, bits)
