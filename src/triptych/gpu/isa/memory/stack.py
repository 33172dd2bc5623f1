"""The thread's stack (PTX manual, 9.7.17): local memory that is allocated while a kernel runs, behind the variables.

It grows down from its end. A register says how many bytes of it are in use; a function that returns gives back what it
allocated (`flow/carry_out_calls.py`).
"""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, U64

_LEAST_ALIGNMENT = 8
_MOST_ALIGNMENT = 1 << 23
_row = partial(row, types="u32 u64", pipe=Pipe.INTEGER, effect=Effect.STACK)


def _pointer(m: Machine[V], used: V) -> V:
    """The place in local memory down to which the stack is in use."""
    return m.sub(U64, m.stack_bounds()[1], used)


def _used(m: Machine[V], pointer: V) -> V:
    return m.sub(U64, m.stack_bounds()[1], pointer)


@_row("stacksave.type d, %stack.used:u64", section="9.7.17.1")
def stacksave(m: Machine[V], f: Form, used: V) -> V:
    """d = the stack pointer."""
    return m.resize(U64, f.type, _pointer(m, used))


@_row("stackrestore.type %stack.used:u64, a", section="9.7.17.2")
def stackrestore(m: Machine[V], f: Form, a: V) -> V:
    """The stack pointer = a."""
    return _used(m, m.resize(f.type, U64, a))


def _wrong_alignment(form: Form) -> str | None:
    align = form.literals.get("align", _LEAST_ALIGNMENT)
    if align > 0 and not align & (align - 1) and align <= _MOST_ALIGNMENT:
        return None
    return f"the alignment must be a power of two up to {_MOST_ALIGNMENT}, not {align}"


@_row(
    "alloca.type d|%stack.used:u64, size, align!:u32?, %stack.used:u64", section="9.7.17.3",
    restrictions=(Restriction(frozenset(), rule=_wrong_alignment),),
)  # fmt: skip
def alloca(m: Machine[V], f: Form, size: V, *rest: V) -> tuple[V, V]:
    """d = the stack pointer, moved down by `size` bytes to a multiple of `align` (8 at least): the place allocated.

    Where the stack has not as many, it is a place that no access reaches.
    """
    align = max(f.literals.get("align", _LEAST_ALIGNMENT), _LEAST_ALIGNMENT)
    start, _ = m.stack_bounds()
    before, wanted = _pointer(m, rest[-1]), m.resize(f.type, U64, size)
    moved = m.bit_and(U64, m.sub(U64, before, wanted), m.constant(U64, -align))
    overflows = m.bit_or(PRED, m.compare(U64, "lt", before, wanted), m.compare(U64, "lt", moved, start))
    place = m.select(U64, overflows, m.constant(U64, -align), moved)
    return m.resize(U64, f.type, place), _used(m, place)
