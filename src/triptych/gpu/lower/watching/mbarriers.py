"""The phases of mbarriers: how many ended, and how many of these somebody saw end (`layout.py` says where)."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.asynchronous.mbarrier_object import INIT, INVALIDATE, PHASE
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Emitter, constant, start_function, vector
from triptych.gpu.lower.watching.completion import SWEEP
from triptych.gpu.lower.watching.layout import WatchedMemory, ended, seen, watch
from triptych.gpu.lower.watching.reads import DROP
from triptych.gpu.lower.watching.records import WatchedBlock, WatchedWarp

OBSERVE, SETTLE = watch("observe"), watch("settle")


def emit_change(e: Emitter, context: ir.Value, kind: str, mbarrier: ir.Value, before: ir.Value) -> None:
    """After an operation on the mbarrier at a place of the host, an i64, which held `before`: counts its phases.

    A new object's copies are its own: those of what was there before count as complete.
    """
    phases = WatchedMemory(e, context).phases(mbarrier)
    if kind in (INIT, INVALIDATE):
        count = e.b.add(ended(e, phases), ir.Constant(I32, 1))
        e.b.store(count, seen(e, phases))
    else:
        after = e.b.load(e.b.inttoptr(mbarrier, POINTER), typ=I64)
        flips = e.b.and_(e.b.lshr(e.b.xor(before, after), constant(PHASE)), constant(1))
        count = e.b.add(ended(e, phases), e.b.trunc(flips, I32))
    e.b.store(count, phases)


def build_mbarriers(module: ir.Module) -> None:
    """Emits `SETTLE` and `OBSERVE`."""
    _build_settle(module)
    _build_observe(module)


def _build_settle(module: ir.Module) -> None:
    """settle(context): looks which of the copies that mbarriers are told of are complete."""
    e = start_function(module, SETTLE, VOID, [POINTER])
    (context,) = e.function.args
    memory = WatchedMemory(e, context)
    block = memory.block()
    landing = e.field(WatchedBlock, block, "first")
    e.intrinsic(SWEEP, VOID, [context, memory.shared, landing, ir.Constant(I32, 0)])
    tells = e.b.icmp_unsigned("!=", e.load_field(WatchedBlock, block, "tells"), constant(0))
    with e.when(tells), e.counted(memory.field("warp_count")) as warp:
        ends = e.field(WatchedWarp, memory.warp(warp), "first")
        e.intrinsic(SWEEP, VOID, [context, memory.shared, ends, ir.Constant(I32, 1)])
    with e.when(e.b.icmp_unsigned("!=", e.load_field(WatchedBlock, block, "reads"), constant(0)), likely=False):
        e.intrinsic(DROP, VOID, [context])
    e.b.ret_void()


def _build_observe(module: ir.Module) -> None:
    """observe(context, mask, addresses): the lanes see that the last phases of the block's mbarriers ended."""
    e = start_function(module, OBSERVE, VOID, [POINTER, I32, vector(I32)])
    context, mask, addresses = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    limit = e.splat(b.trunc(memory.field("shared_size"), I32))
    left = e.variable(I32, b.and_(mask, e.bits(b.icmp_unsigned("<", addresses, limit))))
    head, body, done = e.block("places"), e.block("place"), e.block("done")
    b.branch(head)
    b.position_at_end(head)
    rest = e.get(left, I32)
    b.cbranch(b.icmp_unsigned("!=", rest, ir.Constant(I32, 0)), body, done)
    b.position_at_end(body)
    address = b.extract_element(addresses, e.count_trailing_zeros(rest))
    phases = memory.phases(b.add(memory.shared, b.zext(address, I64)))
    count = ended(e, phases)
    with e.when(b.icmp_unsigned("!=", b.load(seen(e, phases), typ=I32), count)):
        b.store(count, seen(e, phases))
        e.intrinsic(SETTLE, VOID, [context])
    same = e.bits(b.icmp_unsigned("==", addresses, e.splat(address)))
    b.store(b.and_(rest, b.not_(same)), left)
    b.branch(head)
    b.position_at_end(done)
    b.ret_void()
