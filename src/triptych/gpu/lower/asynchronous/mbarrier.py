"""mbarriers as generated code calls them: the symbols, and the completion of transactions.

For whoever carries out asynchronous copies: `COMPLETE` is the generated function

    triptych.mbarrier.complete(context, site, lane, address, bytes)

which completes `bytes` (i64) transactions at the mbarrier at `address` (i64), an address of shared memory that may name
a block of the cluster as `mapa` makes them, for the thread `lane` (i64) of the warp that runs. It looks at bounds and
alignment, and records the fault of the memory site `site`, whose `delta` it overwrites. Code that calls it is linked
with what its effect's column `completes` brings along (`linked_units.py`), and `site` is one of its own.
"""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.asynchronous.mbarrier_object import OBJECT_BYTES, TRANSACT
from triptych.gpu.lower.primitives.emitter import I64, POINTER, VOID, Emitter, constant, start_function
from triptych.gpu.lower.records import FaultKind, Site
from triptych.gpu.lower.scheduling.clusters import LOCATE
from triptych.gpu.lower.scheduling.services import record_fault
from triptych.gpu.lower.watching.layout import watched_name
from triptych.gpu.lower.watching.mbarriers import emit_change

COMPLETE = "triptych.mbarrier.complete"
CHANGED = ir.LiteralStructType([I64, I64])
"""What an operation gives: the object before it, and the kind of its fault, 0 for none."""


def change_name(operation: str) -> str:
    """The symbol of an operation on one object: (place, operands…) -> `CHANGED`."""
    return f"triptych.change.{operation}"


def build_complete(*, watched: bool = False) -> ir.Module:
    """The module with `COMPLETE`, or its variant for kernels that asynccheck looks at."""
    name = watched_name(COMPLETE) if watched else COMPLETE
    module = ir.Module(name=name)
    e = start_function(module, name, VOID, [POINTER, POINTER, I64, I64, I64])
    context, site, _, address, amount = e.function.args
    found = e.intrinsic(LOCATE, I64, [context, site, address, constant(OBJECT_BYTES)])
    odd = e.b.icmp_unsigned("!=", e.b.and_(address, constant(OBJECT_BYTES - 1)), constant(0))
    _refuse(e, e.b.select(odd, constant(FaultKind.MISALIGNED), found), constant(0))
    host = e.load_field(Site, site, "delta")
    changed = e.intrinsic(change_name(TRANSACT), CHANGED, [e.b.inttoptr(host, POINTER), e.b.sub(constant(0), amount)])
    _refuse(e, e.b.extract_value(changed, 1), e.b.extract_value(changed, 0))
    if watched:
        emit_change(e, context, TRANSACT, host, e.b.extract_value(changed, 0))
    e.b.ret_void()
    return module


def _refuse(e: Emitter, kind: ir.Value, element: ir.Value) -> None:
    """Returns where there is a fault, which is recorded."""
    context, site, lane, address, _ = e.function.args
    with e.when(e.b.icmp_unsigned("!=", kind, constant(0)), likely=False):
        size = constant(OBJECT_BYTES)
        record_fault(e, context, kind, lane=lane, site=site, address=address, size=size, detail=element)
        e.b.ret_void()
