"""`shfl` as helpers: a permutation of the lanes that is known only when it runs, and what goes before and behind it."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, Emitter, start_function, vector
from triptych.gpu.lower.primitives.values import Value
from triptych.gpu.lower.primitives.warp_machine import EXCHANGE, SHUFFLE, WarpMachine

_ROW = vector(I32)


def build_shuffle() -> ir.Module:
    """The module with `triptych.shuffle(values, lanes)` and `triptych.exchange`."""
    module = ir.Module(name=SHUFFLE)
    e = start_function(module, SHUFFLE, _ROW, [_ROW, _ROW])
    e.b.ret(_permute(e, *e.function.args))
    _build_exchange(module)
    return module


def _permute(e: Emitter, values: ir.Value, picks: ir.Value) -> ir.Value:
    source, indices, target = (e.variable(_ROW, v) for v in (values, picks, values))
    for lane in range(WARP_SIZE):
        pick = e.b.zext(e.b.load(e.offset(indices, 4 * lane), typ=I32), I64)
        value = e.b.load(e.offset(source, e.b.shl(pick, ir.Constant(I64, 2))), typ=I32)
        e.b.store(value, e.offset(target, 4 * lane))
    return e.get(target, _ROW)


def _build_exchange(module: ir.Module) -> None:
    """exchange(context, misuse, active, mask, values, lanes): `Machine.exchange` where all lanes have one mask."""
    e = start_function(module, EXCHANGE, _ROW, [POINTER, POINTER, I32, I32, _ROW, _ROW])
    context, misuse, active, mask, values, lanes = e.function.args
    shuffled = _permute(e, values, lanes)
    with e.when(e.b.icmp_unsigned("==", e.b.and_(active, mask), ir.Constant(I32, -1)), likely=True):
        e.b.ret(shuffled)
    machine = WarpMachine(e, context)
    machine.active, machine.misuse = active, misuse
    result = e.variable(_ROW, shuffled)
    machine.drop_absent(shuffled, result, Value(lanes, False), Value(mask, True))
    e.b.ret(e.get(result, _ROW))
