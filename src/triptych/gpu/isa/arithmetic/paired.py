"""Arithmetic on pairs of singles in 64-bit registers (PTX manual, 9.7.3.3 to 9.7.3.6; from sm_100 on)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.floating import ROUNDINGS, compute
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, U32, U64


def _singles_of(m: Machine[V], a: V) -> tuple[V, V]:
    """The low and the high single of a double word."""
    words = (a, m.shift_right(U64, a, m.constant(U64, 32)))
    low, high = (m.bitcast(U32, F32, m.resize(U64, U32, word)) for word in words)
    return low, high


def _map_singles(m: Machine[V], f: Form, operation: str, *operands: V) -> V:
    """An operation on both singles of each operand."""
    halves = zip(*(_singles_of(m, a) for a in operands), strict=True)
    words = (m.resize(U32, U64, m.bitcast(F32, U32, compute(m, f, F32, operation, *half))) for half in halves)
    low, high = words
    return m.bit_or(U64, low, m.shift_left(U64, high, m.constant(U64, 32)))


def add_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b, in both halves."""
    return _map_singles(m, f, "add", a, b)


def sub_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b, in both halves."""
    return _map_singles(m, f, "sub", a, b)


def mul_pair(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b, in both halves."""
    return _map_singles(m, f, "mul", a, b)


def fma_pair(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once, in both halves."""
    return _map_singles(m, f, "fma", a, b, c)


_pairs = partial(row, groups=ROUNDINGS, pipe=Pipe.FP32, needs="sm_100")
_pairs("add{.rnd}{.ftz}.f32x2 d, a, b", rounds="add", flops=1, section="9.7.3.3")(add_pair)
_pairs("sub{.rnd}{.ftz}.f32x2 d, a, b", rounds="sub", flops=1, section="9.7.3.4")(sub_pair)
_pairs("mul{.rnd}{.ftz}.f32x2 d, a, b", rounds="mul", flops=1, section="9.7.3.5")(mul_pair)
_pairs("fma.rnd{.ftz}.f32x2 d, a, b, c", rounds="fma", flops=2, section="9.7.3.6")(fma_pair)
