"""Integer instructions on bit fields, bytes and half words (PTX manual, 9.7.1.5 to 9.7.1.24)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.integer import clamp_to_s32
from triptych.gpu.isa.arithmetic.narrow import either
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, S32, S64, U32, U64, ScalarType

_HALF = {"half": "hi lo"}
_EDGE = {"edge": "clamp wrap"}
_WORD = {"atype": "u32 s32", "btype": "u32 s32"}


# --- Multiplication of 24 bits ------------------------------------------------------------------------------------


def _low_24(m: Machine[V], t: ScalarType, a: V) -> V:
    eight = m.constant(t, 8)
    return m.shift_right(t, m.shift_left(t, a, eight), eight)


def _product_24(m: Machine[V], f: Form, a: V, b: V) -> V:
    """Bits 47 … 16 of the product of the low 24 bits, or its low 32."""
    t = f.type
    wide = S64 if t.is_signed else U64
    product = m.mul(wide, *(m.resize(t, wide, _low_24(m, t, x)) for x in (a, b)))
    return m.resize(wide, t, m.shift_right(wide, product, m.constant(wide, 16)) if f.has("hi") else product)


@row("mul24.half.type d, a, b", types="u32 s32", groups=_HALF, section="9.7.1.5", pipe=Pipe.INTEGER)
def mul24(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = bits 47 … 16 (`.hi`) or the low 32 (`.lo`) of the product of the low 24 bits of a and b."""
    return _product_24(m, f, a, b)


@row("mad24.half.type d, a, b, c", types="u32 s32", groups=_HALF, section="9.7.1.6", pipe=Pipe.INTEGER)
def mad24(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = as mul24, plus c."""
    return m.add(f.type, _product_24(m, f, a, b), c)


@row("mad24.hi.sat.s32 d, a, b, c", section="9.7.1.6", pipe=Pipe.INTEGER)
def mad24_sat(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = bits 47 … 16 of the product of the low 24 bits, plus c, clamped to the range of s32."""
    high = m.resize(S32, S64, _product_24(m, f, a, b))
    return clamp_to_s32(m, m.add(S64, high, m.resize(S32, S64, c)))


# --- Bit fields ---------------------------------------------------------------------------------------------------


def _picked_bit(m: Machine[V], bits: V, rank: V) -> V:
    """The place of the set bit with `rank` set bits below it; all ones where there is none."""
    place, left = m.constant(U32, 0), rank
    for width in (16, 8, 4, 2, 1):
        low = m.bit_and(U32, m.shift_right(U32, bits, place), m.constant(U32, (1 << width) - 1))
        count = m.count_ones(U32, low)
        above = m.compare(U32, "ge", left, count)
        left = m.select(U32, above, m.sub(U32, left, count), left)
        place = m.select(U32, above, m.add(U32, place, m.constant(U32, width)), place)
        # A rank beyond all set bits would go on for ever upwards: 31 is the highest place.
        place = m.bit_and(U32, place, m.constant(U32, 31))
    found = m.compare(U32, "lt", rank, m.count_ones(U32, bits))
    return m.select(U32, found, place, m.constant(U32, -1))


@row("fns.b32 d, mask, base:u32, offset:s32", section="9.7.1.17", pipe=Pipe.INTEGER)
def fns(m: Machine[V], f: Form, mask: V, base: V, offset: V) -> V:
    """d = the place of the offset-th set bit of the mask from base on, upwards or downwards; all ones if none.

    For the offset -2^31, which has no magnitude, the hardware gives 0.
    """
    zero, one, top = m.constant(U32, 0), m.constant(U32, 1), m.constant(U32, 31)
    inside = m.compare(U32, "le", base, top)
    start = m.bit_and(U32, base, top)
    down = m.compare(S32, "lt", offset, zero)
    here = m.compare(U32, "eq", offset, zero)
    bits = m.select(U32, down, m.reverse_bits(U32, mask), mask)
    start = m.select(U32, down, m.sub(U32, top, start), start)
    bits = m.bit_and(U32, bits, m.shift_left(U32, m.constant(U32, -1), start))
    bits = m.select(U32, here, m.bit_and(U32, bits, m.shift_left(U32, one, start)), bits)
    rank = m.sub(U32, m.select(U32, down, m.sub(U32, zero, offset), offset), one)
    place = _picked_bit(m, bits, m.select(U32, here, zero, rank))
    missing = m.compare(U32, "gt", place, top)
    place = m.select(
        U32, m.bit_and(PRED, down, m.bit_xor(PRED, missing, m.constant(PRED, 1))), m.sub(U32, top, place), place
    )
    place = m.select(U32, inside, place, m.constant(U32, -1))
    return m.select(U32, m.compare(U32, "eq", offset, m.constant(U32, 1 << 31)), zero, place)


@row("szext.edge.type d, a, b:u32", types="u32 s32", groups=_EDGE, section="9.7.1.21", pipe=Pipe.INTEGER)
def szext(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the low b bits of a, extended to 32 by their sign if signed."""
    length = m.bit_and(U32, b, m.constant(U32, 31))
    empty = m.compare(U32, "eq", length, m.constant(U32, 0))
    spare = m.sub(U32, m.constant(U32, 32), m.select(U32, empty, m.constant(U32, 1), length))
    field = m.shift_right(f.type, m.shift_left(U32, a, spare), spare)
    field = m.select(U32, empty, m.constant(U32, 0), field)
    if f.has("wrap"):
        return field
    return m.select(U32, m.compare(U32, "ge", b, m.constant(U32, 32)), a, field)


@row("bmsk.edge.b32 d, a:u32, b:u32", groups=_EDGE, section="9.7.1.22", pipe=Pipe.INTEGER)
def bmsk(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = b ones from bit a on, zeros elsewhere."""
    limit, ones, zero = m.constant(U32, 32), m.constant(U32, -1), m.constant(U32, 0)
    low = m.constant(U32, 31)
    start, length = m.bit_and(U32, a, low), m.bit_and(U32, b, low)
    below = m.shift_left(U32, ones, start)
    end = m.add(U32, start, length)
    over = m.compare(U32, "ge", end, limit)
    if f.has("clamp"):
        below = m.select(U32, m.compare(U32, "ge", a, limit), zero, below)
        over = m.bit_or(PRED, over, m.compare(U32, "ge", b, limit))
    above = m.select(U32, over, zero, m.shift_left(U32, ones, m.bit_and(U32, end, low)))
    return m.bit_and(U32, below, m.bit_xor(U32, above, ones))


# --- Bytes and half words -----------------------------------------------------------------------------------------


def extract(m: Machine[V], t: ScalarType, a: V, index: int, bits: int) -> V:
    """The index-th part of `bits` bits of a word, extended to 32 as `t` says."""
    left = m.shift_left(U32, a, m.constant(U32, 32 - bits * (index + 1)))
    return m.shift_right(t, left, m.constant(U32, 32 - bits))


@row("dp4a.atype.btype d:u32, a:atype, b:btype, c:u32", types=_WORD, section="9.7.1.23", pipe=Pipe.INTEGER)
def dp4a(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = c + the sum of the products of the four bytes of a and b."""
    for index in range(4):
        pair = (extract(m, f.types[t], x, index, 8) for t, x in (("atype", a), ("btype", b)))
        c = m.add(U32, c, m.mul(U32, *pair))
    return c


@row(
    "dp2a.half.atype.btype d:u32, a:atype, b:btype, c:u32",
    types=_WORD, groups=_HALF, section="9.7.1.24", pipe=Pipe.INTEGER,
)  # fmt: skip
def dp2a(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = c + the sum of the products of the two half words of a and two bytes of b: the low or the high ones."""
    first = 2 if f.has("hi") else 0
    for index in range(2):
        left = extract(m, f.types["atype"], a, index, 16)
        right = extract(m, f.types["btype"], b, first + index, 8)
        c = m.add(U32, c, m.mul(U32, left, right))
    return c


def add_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b in each half, modulo 2^16."""
    return either(m, f, m.add, a, b)


def _clamp_below_zero(m: Machine[V], f: Form, t: ScalarType, a: V) -> V:
    zero = m.constant(t, 0)
    return m.select(t, m.compare(t, "lt", a, zero), zero, a) if f.has("relu") else a


def min_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller, in each half of a pair; not below 0 under `.relu`."""

    def smaller(t: ScalarType, x: V, y: V) -> V:
        return _clamp_below_zero(m, f, t, m.select(t, m.compare(t, "lt", x, y), x, y))

    return either(m, f, smaller, a, b)


def max_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger, in each half of a pair; not below 0 under `.relu`."""

    def larger(t: ScalarType, x: V, y: V) -> V:
        return _clamp_below_zero(m, f, t, m.select(t, m.compare(t, "gt", x, y), x, y))

    return either(m, f, larger, a, b)


_pairs = partial(row, pipe=Pipe.INTEGER, needs="sm_90")
_pairs("add.type d, a, b", types="u16x2 s16x2", section="9.7.1.1")(add_pair)
for _syntax, _types in (("{}.type d, a, b", "u16x2 s16x2"), ("{}.relu.type d, a, b", "s16x2 s32")):
    _pairs(_syntax.format("min"), types=_types, section="9.7.1.12")(min_pair)
    _pairs(_syntax.format("max"), types=_types, section="9.7.1.13")(max_pair)
