"""Integer arithmetic (PTX manual, 9.7.1)."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import S32, S64, TYPES, U32, U64, WIDENED, ScalarType

_ALL = "u16 u32 u64 s16 s32 s64"
_WORDS = "u16 u32 s16 s32"


@row("add.type d, a, b", types=_ALL, section="9.7.1.1", pipe=Pipe.INTEGER)
def add(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b, modulo 2^width."""
    return m.add(f.type, a, b)


@row("sub.type d, a, b", types=_ALL, section="9.7.1.2", pipe=Pipe.INTEGER)
def sub(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b, modulo 2^width."""
    return m.sub(f.type, a, b)


@row("mul.lo.type d, a, b", types=_ALL, section="9.7.1.3", pipe=Pipe.INTEGER)
def mul_lo(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the low half of a × b."""
    return m.mul(f.type, a, b)


def high_product(m: Machine[V], t: ScalarType, a: V, b: V) -> V:
    """The high half of a × b."""
    if t.bits < 64:
        wide = TYPES[f"{t.name[0]}{t.bits * 2}"]
        product = m.mul(wide, m.resize(t, wide, a), m.resize(t, wide, b))
        return m.resize(wide, t, m.shift_right(wide, product, m.constant(wide, t.bits)))
    low, shift = m.constant(U64, 0xFFFFFFFF), m.constant(U64, 32)
    a_low, a_high = m.bit_and(U64, a, low), m.shift_right(U64, a, shift)
    b_low, b_high = m.bit_and(U64, b, low), m.shift_right(U64, b, shift)
    lowest = m.shift_right(U64, m.mul(U64, a_low, b_low), shift)
    middle = m.add(U64, m.mul(U64, a_high, b_low), lowest)
    other = m.add(U64, m.mul(U64, a_low, b_high), m.bit_and(U64, middle, low))
    high = m.add(U64, m.mul(U64, a_high, b_high), m.shift_right(U64, middle, shift))
    high = m.add(U64, high, m.shift_right(U64, other, shift))
    if not t.is_signed:
        return high
    sign = m.constant(U64, 63)
    from_a = m.bit_and(U64, m.shift_right(S64, a, sign), b)
    from_b = m.bit_and(U64, m.shift_right(S64, b, sign), a)
    return m.sub(U64, m.sub(U64, high, from_a), from_b)


@row("mul.hi.type d, a, b", types=_ALL, section="9.7.1.3", pipe=Pipe.INTEGER)
def mul_hi(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the high half of a × b."""
    return high_product(m, f.type, a, b)


def _wide(m: Machine[V], t: ScalarType, a: V, b: V) -> V:
    wide = WIDENED[t.name]
    return m.mul(wide, m.resize(t, wide, a), m.resize(t, wide, b))


@row("mul.wide.type d:wide, a, b", types=_WORDS, section="9.7.1.3", pipe=Pipe.INTEGER)
def mul_wide(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b, of twice the width."""
    return _wide(m, f.type, a, b)


@row("mad.lo.type d, a, b, c", types=_ALL, section="9.7.1.4", pipe=Pipe.INTEGER)
def mad_lo(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = the low half of a × b, plus c."""
    return m.add(f.type, m.mul(f.type, a, b), c)


@row("mad.hi.type d, a, b, c", types=_ALL, section="9.7.1.4", pipe=Pipe.INTEGER)
def mad_hi(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = the high half of a × b, plus c."""
    return m.add(f.type, high_product(m, f.type, a, b), c)


@row("mad.hi.sat.s32 d, a, b, c", section="9.7.1.4", pipe=Pipe.INTEGER)
def mad_hi_sat(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = the high half of a × b, plus c, clamped to the range of s32."""
    high = m.resize(S32, S64, high_product(m, S32, a, b))
    return clamp_to_s32(m, m.add(S64, high, m.resize(S32, S64, c)))


@row("mad.wide.type d:wide, a, b, c:wide", types=_WORDS, section="9.7.1.4", pipe=Pipe.INTEGER)
def mad_wide(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, of twice the width."""
    return m.add(WIDENED[f.type.name], _wide(m, f.type, a, b), c)


@row("div.type d, a, b", types=_ALL, section="9.7.1.8", pipe=Pipe.INTEGER)
def div(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a / b, towards zero."""
    return m.divide(f.type, a, b)


@row("rem.type d, a, b", types=_ALL, section="9.7.1.9", pipe=Pipe.INTEGER)
def rem(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the remainder of a / b, with the sign of a; all ones where b is 0."""
    return m.remainder(f.type, a, b)


@row("abs.type d, a", types="s16 s32 s64", section="9.7.1.10", pipe=Pipe.INTEGER)
def absolute(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|; the smallest integer stays."""
    zero = m.constant(f.type, 0)
    return m.select(f.type, m.compare(f.type, "lt", a, zero), m.sub(f.type, zero, a), a)


@row("neg.type d, a", types="s16 s32 s64", section="9.7.1.11", pipe=Pipe.INTEGER)
def neg(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    return m.sub(f.type, m.constant(f.type, 0), a)


@row("min.type d, a, b", types=_ALL, section="9.7.1.12", pipe=Pipe.INTEGER)
def minimum(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller."""
    return m.select(f.type, m.compare(f.type, "lt", a, b), a, b)


@row("max.type d, a, b", types=_ALL, section="9.7.1.13", pipe=Pipe.INTEGER)
def maximum(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger."""
    return m.select(f.type, m.compare(f.type, "gt", a, b), a, b)


@row("popc.type d:u32, a", types="b32 b64", section="9.7.1.14", pipe=Pipe.INTEGER)
def popc(m: Machine[V], f: Form, a: V) -> V:
    """d = the set bits of a."""
    return m.resize(f.type, U32, m.count_ones(f.type, a))


@row("clz.type d:u32, a", types="b32 b64", section="9.7.1.15", pipe=Pipe.INTEGER)
def clz(m: Machine[V], f: Form, a: V) -> V:
    """d = the leading zeros of a."""
    return m.resize(f.type, U32, m.count_leading_zeros(f.type, a))


@row("bfind{.shiftamt}.type d:u32, a", types="u32 u64 s32 s64", section="9.7.1.16", pipe=Pipe.INTEGER)
def bfind(m: Machine[V], f: Form, a: V) -> V:
    """d = the highest bit of a that is not the sign, or how far it is from the top; all ones where there is none."""
    t = f.type
    unsigned = U64 if t.bits == 64 else U32
    if t.is_signed:
        a = m.bit_xor(unsigned, a, m.shift_right(t, a, m.constant(t, t.bits - 1)))
    distance = m.resize(unsigned, U32, m.count_leading_zeros(unsigned, a))
    found = distance if f.has("shiftamt") else m.sub(U32, m.constant(U32, t.bits - 1), distance)
    return m.select(U32, m.compare(unsigned, "eq", a, m.constant(unsigned, 0)), m.constant(U32, -1), found)


@row("brev.type d, a", types="b32 b64", section="9.7.1.18", pipe=Pipe.INTEGER)
def brev(m: Machine[V], f: Form, a: V) -> V:
    """d = the bits of a in the opposite order."""
    return m.reverse_bits(f.type, a)


def _place(m: Machine[V], t: ScalarType, a: V) -> V:
    """The position or the length of a field: its low 8 bits, of a 64-bit instruction all (the manual says 8)."""
    return a if t.bits == 64 else m.bit_and(U32, a, m.constant(U32, 255))


@row("bfe.type d, a, b:u32, c:u32", types="u32 u64 s32 s64", section="9.7.1.19", pipe=Pipe.INTEGER)
def bfe(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = c bits of a from bit b on, extended by the field's sign if signed."""
    t, width = f.type, f.type.bits
    unsigned = U64 if width == 64 else U32
    limit = m.constant(U32, width)
    position, length = (_place(m, t, x) for x in (b, c))
    inside = m.compare(U32, "lt", position, limit)
    amount = m.resize(U32, unsigned, m.select(U32, inside, position, m.constant(U32, width - 1)))
    shifted = m.shift_right(t, a, amount)
    beyond = m.select(
        unsigned, m.compare(t, "lt", a, m.constant(t, 0)), m.constant(unsigned, -1), m.constant(unsigned, 0)
    )
    shifted = m.select(unsigned, inside, shifted, beyond)
    whole = m.compare(U32, "ge", length, limit)
    empty = m.compare(U32, "eq", length, m.constant(U32, 0))
    spare = m.sub(U32, limit, m.select(U32, whole, limit, m.select(U32, empty, m.constant(U32, 1), length)))
    spare = m.resize(U32, unsigned, spare)
    field = m.shift_right(t, m.shift_left(unsigned, shifted, spare), spare)
    return m.select(unsigned, empty, m.constant(unsigned, 0), field)


@row("bfi.type d, a, b, c:u32, e:u32", types="b32 b64", section="9.7.1.20", pipe=Pipe.INTEGER)
def bfi(m: Machine[V], f: Form, a: V, b: V, c: V, e: V) -> V:
    """d = b with e bits from bit c on replaced by the low bits of a."""
    t, width = f.type, f.type.bits
    limit = m.constant(U32, width)
    position, length = (_place(m, t, x) for x in (c, e))
    inside = m.compare(U32, "lt", position, limit)
    amount = m.resize(U32, t, m.select(U32, inside, position, m.constant(U32, 0)))
    whole = m.compare(U32, "ge", length, limit)
    short = m.resize(U32, t, m.select(U32, whole, m.constant(U32, 0), length))
    ones = m.sub(t, m.shift_left(t, m.constant(t, 1), short), m.constant(t, 1))
    mask = m.shift_left(t, m.select(t, whole, m.constant(t, -1), ones), amount)
    merged = m.bit_or(
        t, m.bit_and(t, m.shift_left(t, a, amount), mask), m.bit_and(t, b, m.bit_xor(t, mask, m.constant(t, -1)))
    )
    return m.select(t, inside, merged, b)


@row("sad.type d, a, b, c", types=_ALL, section="9.7.1.7", pipe=Pipe.INTEGER)
def sad(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = c + |a - b|."""
    t = f.type
    less = m.compare(t, "lt", a, b)
    return m.add(t, c, m.select(t, less, m.sub(t, b, a), m.sub(t, a, b)))


@row("add.sat.s32 d, a, b", section="9.7.1.1", pipe=Pipe.INTEGER)
def add_sat(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b, clamped to the range of s32."""
    return clamp_to_s32(m, m.add(S64, m.resize(S32, S64, a), m.resize(S32, S64, b)))


@row("sub.sat.s32 d, a, b", section="9.7.1.2", pipe=Pipe.INTEGER)
def sub_sat(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b, clamped to the range of s32."""
    return clamp_to_s32(m, m.sub(S64, m.resize(S32, S64, a), m.resize(S32, S64, b)))


def clamp_to_s32(m: Machine[V], value: V) -> V:
    """An s64 clamped to the range of s32, as s32."""
    low, high = m.constant(S64, -(1 << 31)), m.constant(S64, (1 << 31) - 1)
    value = m.select(S64, m.compare(S64, "lt", value, low), low, value)
    value = m.select(S64, m.compare(S64, "gt", value, high), high, value)
    return m.resize(S64, S32, value)
