"""Arithmetic on four bytes in a word, and sums of half words and words that saturate (PTX manual, 9.7.1).

Forms of PTX ISA 9.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triptych.gpu.isa.arithmetic.fields import extract
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import S32, U32, U64, ScalarType, packed_element


def _by_part(m: Machine[V], f: Form, operation: Callable[..., V], *operands: V) -> V:
    """An operation `(type, *parts)` on the parts of words, each extended to 32 bits, and cut to its own again."""
    part = packed_element(f.type)
    t, word = S32 if part.is_signed else U32, m.constant(U32, 0)
    for index in range(32 // part.bits):
        value = operation(t, *(extract(m, t, a, index, part.bits) for a in operands))
        value = m.bit_and(U32, value, m.constant(U32, (1 << part.bits) - 1))
        word = m.bit_or(U32, word, m.shift_left(U32, value, m.constant(U32, part.bits * index)))
    return word


def _clamped(m: Machine[V], f: Form, total: V) -> V:
    """An s32 clamped to the range of a part under `.sat`."""
    part = packed_element(f.type)
    if not f.has("sat"):
        return total
    low = -(1 << (part.bits - 1)) if part.is_signed else 0
    high = (1 << (part.bits - part.is_signed)) - 1
    for end, relation in ((low, "lt"), (high, "gt")):
        bound = m.constant(S32, end)
        total = m.select(S32, m.compare(S32, relation, total, bound), bound, total)
    return total


def add_parts(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b, part by part; clamped to the part's range under `.sat`."""

    def add(t: ScalarType, x: V, y: V) -> V:
        return _clamped(m, f, m.add(t, x, y))

    return _by_part(m, f, add, a, b)


def sub_parts(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b, part by part; clamped to the part's range under `.sat`."""

    def sub(t: ScalarType, x: V, y: V) -> V:
        return _clamped(m, f, m.sub(t, x, y))

    return _by_part(m, f, sub, a, b)


def neg_parts(m: Machine[V], f: Form, a: V) -> V:
    """d = -a, part by part."""

    def negate(t: ScalarType, x: V) -> V:
        return m.sub(t, m.constant(t, 0), x)

    return _by_part(m, f, negate, a)


def _extreme(m: Machine[V], f: Form, relation: str, a: V, b: V) -> V:
    def pick(t: ScalarType, x: V, y: V) -> V:
        picked = m.select(t, m.compare(t, relation, x, y), x, y)
        zero = m.constant(t, 0)
        return m.select(t, m.compare(t, "lt", picked, zero), zero, picked) if f.has("relu") else picked

    return _by_part(m, f, pick, a, b)


def min_parts(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller, part by part; not below 0 under `.relu`."""
    return _extreme(m, f, "lt", a, b)


def max_parts(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger, part by part; not below 0 under `.relu`."""
    return _extreme(m, f, "gt", a, b)


_row = partial(row, pipe=Pipe.INTEGER, needs="sm_107f sm_120f")
_BYTES = "u8x4 s8x4"
_row("add{.sat}.type d, a, b", types=_BYTES, section="9.7.1.1")(add_parts)
_row("add.sat.type d, a, b", types="u16x2 s16x2", section="9.7.1.1")(add_parts)
_row("sub{.sat}.type d, a, b", types=_BYTES, section="9.7.1.2")(sub_parts)
_row("neg.s8x4 d, a", section="9.7.1.11")(neg_parts)
for _syntax, _types in (("{}.type d, a, b", _BYTES), ("{}.relu.type d, a, b", "s8x4")):
    _row(_syntax.format("min"), types=_types, section="9.7.1.12")(min_parts)
    _row(_syntax.format("max"), types=_types, section="9.7.1.13")(max_parts)


@_row("add.sat.u32 d, a, b", section="9.7.1.1")
def add_words(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b, at most 2^32 - 1."""
    total = m.add(U64, m.resize(U32, U64, a), m.resize(U32, U64, b))
    largest = m.constant(U64, (1 << 32) - 1)
    return m.resize(U64, U32, m.select(U64, m.compare(U64, "gt", total, largest), largest, total))
