"""Exact rounding built from round-to-nearest primitives: directed modes, and narrow formats without double rounding.

Everything rests on error-free transformations in double precision (Knuth's two-sum): a product of two singles, halves
or bfloat16s is exact there, and a sum is kept as a rounded value plus its exact error.
"""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.types import F16, F32, F64, PRED, U16, U32, U64


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
    """A single's bfloat16 bits, to nearest even (`rn`) or towards zero (`rz`); NaN becomes 0x7fff."""
    bits = m.bitcast(F32, U32, a)
    sixteen = m.constant(U32, 16)
    if mode == "rn":
        lowest = m.bit_and(U32, m.shift_right(U32, bits, sixteen), m.constant(U32, 1))
        bits = m.add(U32, bits, m.add(U32, lowest, m.constant(U32, 0x7FFF)))
    high = m.shift_right(U32, bits, sixteen)
    nan = m.compare(F32, "nan", a, a)
    return m.resize(U32, U16, m.select(U32, nan, m.constant(U32, 0x7FFF), high))


def single_to_half(m: Machine[V], a: V, mode: str = "rn") -> V:
    """A single's f16 bits, to nearest even or towards zero; NaN becomes 0x7fff."""
    half = m.resize_float(F32, F16, a)
    if mode == "rz":
        magnitude = m.constant(U32, 0x7FFF_FFFF)
        back = m.bit_and(U32, m.bitcast(F32, U32, m.resize_float(F16, F32, half)), magnitude)
        above = m.compare(U32, "gt", back, m.bit_and(U32, m.bitcast(F32, U32, a), magnitude))
        half = m.select(U16, above, m.sub(U16, half, m.constant(U16, 1)), half)
    nan = m.compare(F32, "nan", a, a)
    return m.select(U16, nan, m.constant(U16, 0x7FFF), half)


def directed_single(m: Machine[V], mode: str, total: V, rest: V) -> V:
    """Total + rest rounded to single precision towards zero (`rz`), down (`rm`) or up (`rp`)."""
    nearest = m.resize_float(F64, F32, total)
    back = m.resize_float(F32, F64, nearest)
    zero = m.constant(F64, 0.0)
    # nearest - (total + rest): the difference of the first two is exact, since both are near each other.
    excess = m.float_sub(F64, m.float_sub(F64, back, total), rest)
    negative = m.compare(F64, "lt", total, zero)
    too_high = m.compare(F64, "gt", excess, zero)
    too_low = m.compare(F64, "lt", excess, zero)
    if mode == "rm":
        return _neighbour(m, nearest, too_high, upwards=False)
    if mode == "rp":
        return _neighbour(m, nearest, too_low, upwards=True)
    not_negative = m.bit_xor(PRED, negative, m.constant(PRED, 1))
    down = _neighbour(m, nearest, m.bit_and(PRED, too_high, not_negative), upwards=False)
    return _neighbour(m, down, m.bit_and(PRED, too_low, negative), upwards=True)


def _neighbour(m: Machine[V], a: V, where: V, *, upwards: bool) -> V:
    """The next single upwards (or downwards) where asked, a elsewhere."""
    bits = m.bitcast(F32, U32, a)
    one = m.constant(U32, 1)
    sign = m.constant(U32, 0x8000_0000)
    zero_bits = m.compare(U32, "eq", m.bit_and(U32, bits, m.constant(U32, 0x7FFF_FFFF)), m.constant(U32, 0))
    negative = m.compare(U32, "ge", bits, sign)
    away, towards = m.add(U32, bits, one), m.sub(U32, bits, one)
    if upwards:
        moved = m.select(U32, negative, towards, away)
        moved = m.select(U32, zero_bits, one, moved)
    else:
        moved = m.select(U32, negative, away, towards)
        moved = m.select(U32, zero_bits, m.constant(U32, 0x8000_0001), moved)
    return m.bitcast(U32, F32, m.select(U32, where, moved, bits))
