"""Extended-precision integer arithmetic through the carry flag (PTX manual, 9.7.2)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.integer import high_product
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, TYPES, ScalarType

_row = partial(row, types="u32 s32 u64 s64", pipe=Pipe.INTEGER)
_HALF = {"half": "hi lo"}


def _add(m: Machine[V], t: ScalarType, a: V, b: V, carry: V | None = None) -> tuple[V, V]:
    """a + b + carry, and whether it needs more bits than the type has."""
    unsigned = TYPES[f"u{t.bits}"]
    total = m.add(unsigned, a, b)
    over = m.compare(unsigned, "lt", total, a)
    if carry is None:
        return total, over
    whole = m.add(unsigned, total, m.select(unsigned, carry, m.constant(unsigned, 1), m.constant(unsigned, 0)))
    return whole, m.bit_or(PRED, over, m.compare(unsigned, "lt", whole, total))


def _sub(m: Machine[V], t: ScalarType, a: V, b: V, carry: V | None = None) -> tuple[V, V]:
    """a + ~b + carry, and whether it needs more bits than the type has: the flag is 1 where a - b does not borrow."""
    if carry is None:
        carry = m.constant(PRED, 1)
    unsigned = TYPES[f"u{t.bits}"]
    return _add(m, t, a, m.bit_xor(unsigned, b, m.constant(unsigned, -1)), carry)


def _product(m: Machine[V], f: Form, a: V, b: V) -> V:
    return high_product(m, f.type, a, b) if f.has("hi") else m.mul(f.type, a, b)


@_row("add.cc.type d|%cc.cf:pred, a, b", section="9.7.2.1")
def add_cc(m: Machine[V], f: Form, a: V, b: V) -> tuple[V, V]:
    """d = a + b; sets the carry flag."""
    return _add(m, f.type, a, b)


@_row("addc.type d, a, b, %cc.cf:pred", section="9.7.2.2")
def addc(m: Machine[V], f: Form, a: V, b: V, carry: V) -> V:
    """d = a + b + the carry flag."""
    return _add(m, f.type, a, b, carry)[0]


@_row("addc.cc.type d|%cc.cf:pred, a, b, %cc.cf:pred", section="9.7.2.2")
def addc_cc(m: Machine[V], f: Form, a: V, b: V, carry: V) -> tuple[V, V]:
    """d = a + b + the carry flag; sets the flag."""
    return _add(m, f.type, a, b, carry)


@_row("sub.cc.type d|%cc.cf:pred, a, b", section="9.7.2.3")
def sub_cc(m: Machine[V], f: Form, a: V, b: V) -> tuple[V, V]:
    """d = a - b; sets the carry flag where that does not borrow (the hardware's way, which the manual leaves open)."""
    return _sub(m, f.type, a, b)


@_row("subc.type d, a, b, %cc.cf:pred", section="9.7.2.4")
def subc(m: Machine[V], f: Form, a: V, b: V, carry: V) -> V:
    """d = a + ~b + the carry flag: a - b, less 1 where the last subtraction borrowed."""
    return _sub(m, f.type, a, b, carry)[0]


@_row("subc.cc.type d|%cc.cf:pred, a, b, %cc.cf:pred", section="9.7.2.4")
def subc_cc(m: Machine[V], f: Form, a: V, b: V, carry: V) -> tuple[V, V]:
    """d = a + ~b + the carry flag; sets the flag where that does not borrow."""
    return _sub(m, f.type, a, b, carry)


@_row("mad.half.cc.type d|%cc.cf:pred, a, b, c", groups=_HALF, section="9.7.2.5")
def mad_cc(m: Machine[V], f: Form, a: V, b: V, c: V) -> tuple[V, V]:
    """d = a half of a × b, plus c; sets the carry flag."""
    return _add(m, f.type, _product(m, f, a, b), c)


@_row("madc.half.type d, a, b, c, %cc.cf:pred", groups=_HALF, section="9.7.2.6")
def madc(m: Machine[V], f: Form, a: V, b: V, c: V, carry: V) -> V:
    """d = a half of a × b, plus c and the carry flag."""
    return _add(m, f.type, _product(m, f, a, b), c, carry)[0]


@_row("madc.half.cc.type d|%cc.cf:pred, a, b, c, %cc.cf:pred", groups=_HALF, section="9.7.2.6")
def madc_cc(m: Machine[V], f: Form, a: V, b: V, c: V, carry: V) -> tuple[V, V]:
    """d = a half of a × b, plus c and the carry flag; sets the flag."""
    return _add(m, f.type, _product(m, f, a, b), c, carry)
