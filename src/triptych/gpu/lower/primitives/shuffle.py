"""`shfl` as a helper: a permutation of the lanes that is known only when it runs."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.emitter import I32, I64, start_function, vector

SHUFFLE = "triptych.shuffle"


def build_shuffle() -> ir.Module:
    """The module with `triptych.shuffle(values, lanes)`: a permutation whose lanes are known only when it runs."""
    module = ir.Module(name=SHUFFLE)
    kind = vector(I32)
    e = start_function(module, SHUFFLE, kind, [kind, kind])
    values, picks = e.function.args
    source, indices, target = (e.variable(kind, v) for v in (values, picks, values))
    for lane in range(WARP_SIZE):
        pick = e.b.zext(e.b.load(e.offset(indices, 4 * lane), typ=I32), I64)
        value = e.b.load(e.offset(source, e.b.shl(pick, ir.Constant(I64, 2))), typ=I32)
        e.b.store(value, e.offset(target, 4 * lane))
    e.b.ret(e.get(target, kind))
    return module
