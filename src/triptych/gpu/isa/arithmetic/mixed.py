"""Sums and products of singles with 16-bit floats, which are widened first (PTX manual, 9.7.5; from sm_100 on)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.arithmetic.floating import ROUNDINGS, compute
from triptych.gpu.isa.arithmetic.modifiers import to_single
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32


def _widened(m: Machine[V], f: Form, a: V) -> V:
    return to_single(m, f.types["atype"], a)


def add_mixed(m: Machine[V], f: Form, a: V, c: V) -> V:
    """d = a + c."""
    return compute(m, f, F32, "add", _widened(m, f, a), c)


def sub_mixed(m: Machine[V], f: Form, a: V, c: V) -> V:
    """d = a - c."""
    return compute(m, f, F32, "sub", _widened(m, f, a), c)


def fma_mixed(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    return compute(m, f, F32, "fma", _widened(m, f, a), _widened(m, f, b), c)


_mixed = partial(row, types={"dtype": "f32", "atype": "f16 bf16"}, groups=ROUNDINGS, pipe=Pipe.FP32, needs="sm_100")
_mixed("add{.rnd}{.sat}.dtype.atype d, a:atype, c:dtype", rounds="add", flops=1, section="9.7.5.1")(add_mixed)
_mixed("sub{.rnd}{.sat}.dtype.atype d, a:atype, c:dtype", rounds="sub", flops=1, section="9.7.5.2")(sub_mixed)
_mixed("fma.rnd{.sat}.dtype.atype d, a:atype, b:atype, c:dtype", rounds="fma", flops=2, section="9.7.5.3")(fma_mixed)
