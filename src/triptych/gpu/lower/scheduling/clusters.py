"""The blocks of a cluster as generated code: where one finds another's shared memory, and their common barrier.

A worker holds all blocks of a cluster at once, in neighbouring slots in the order of their ranks. Of the block that
runs, the context has what its slot's record has of the others, except the addresses of memory, which stay.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Emitter, constant, start_function
from triptych.gpu.lower.records import Context, FaultKind, Site, Slot, Status, Warp
from triptych.gpu.lower.scheduling.barriers import CLUSTER_BARRIER, each_warp, live_lanes, release
from triptych.gpu.lower.scheduling.turns import START_BLOCK, move_on

LOCATE = "triptych.locate"
HOOKS = ("room_for_cluster", "start_cluster", "settle_cluster", "some_ready")
"""What the scheduler asks for in launches of clusters: functions, and the fields of `Context` with their addresses."""


def hook_symbol(hook: str) -> str:
    """The symbol of one of `HOOKS`."""
    return f"triptych.{hook}"


def build_clusters() -> ir.Module:
    """The module with `triptych.locate` and the hooks."""
    module = ir.Module(name="triptych.clusters")
    _build_locate(module)
    _build_room(module)
    _build_start(module)
    _build_settle(module)
    _build_some_ready(module)
    return module


def block_rank(e: Emitter, context: ir.Value) -> ir.Value:
    """The rank in its cluster of the block that runs: blocks are numbered cluster after cluster."""
    return e.b.urem(e.load_field(Context, context, "block_index"), e.load_field(Context, context, "cluster_size"))


def _slot_of(e: Emitter, context: ir.Value, rank: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The slot of the cluster's block of a rank, and the block's number there: below 0 where it has exited."""
    slots = e.b.inttoptr(e.load_field(Context, context, "slots"), POINTER)
    own = block_rank(e, context)
    position = e.b.add(e.b.sub(e.load_field(Context, context, "cursor"), own), rank)
    slot = e.offset(slots, e.b.mul(position, constant(Slot.size())))
    runs, kept = (e.load_field(kind, at, "block_index") for kind, at in ((Context, context), (Slot, slot)))
    return slot, e.b.select(e.b.icmp_signed("==", rank, own), runs, kept)


def _build_locate(module: ir.Module) -> None:
    """locate(context, site, address, size): the host's place of an address of the cluster becomes the site's `delta`.

    Gives the fault's kind, 0 where there is none.
    """
    e = start_function(module, LOCATE, I64, [POINTER, POINTER, I64, I64])
    context, site, address, size = e.function.args
    named = e.b.lshr(address, constant(RANK_SHIFT))
    is_own = e.b.icmp_unsigned("==", named, constant(0))
    rank = e.b.select(is_own, block_rank(e, context), e.b.sub(named, constant(1)))
    with e.when(e.b.icmp_unsigned(">=", rank, e.load_field(Context, context, "cluster_size")), likely=False):
        e.b.ret(constant(FaultKind.CLUSTER_RANK))
    slot, number = _slot_of(e, context, rank)
    with e.when(e.b.icmp_signed("<", number, constant(0)), likely=False):
        e.b.ret(constant(FaultKind.CLUSTER_EXITED))
    offset = e.b.and_(address, constant((1 << RANK_SHIFT) - 1))
    beyond = e.b.icmp_unsigned(">", e.b.add(offset, size), e.load_field(Context, context, "shared_size"))
    with e.when(beyond, likely=False):
        e.b.ret(constant(FaultKind.CLUSTER_BOUNDS))
    e.b.store(e.b.add(e.load_field(Slot, slot, "shared"), offset), e.field(Site, site, "delta"))
    e.b.ret(constant(0))


def _build_room(module: ir.Module) -> None:
    """room_for_cluster(context): whether the free slot at the cursor is the first of a cluster's, all of them free."""
    e = start_function(module, hook_symbol("room_for_cluster"), I64, [POINTER])
    (context,) = e.function.args
    size, cursor = (e.load_field(Context, context, name) for name in ("cluster_size", "cursor"))
    with e.when(e.b.icmp_signed("!=", e.b.urem(cursor, size), constant(0))):
        e.b.ret(constant(0))
    slots = e.b.inttoptr(e.load_field(Context, context, "slots"), POINTER)
    with e.counted(size, 1) as rank:
        slot = e.offset(slots, e.b.mul(e.b.add(cursor, rank), constant(Slot.size())))
        with e.when(e.b.icmp_signed(">=", e.load_field(Slot, slot, "block_index"), constant(0))):
            e.b.ret(constant(0))
    e.b.ret(constant(1))


def _build_start(module: ir.Module) -> None:
    """start_cluster(context, index): its blocks, of which `index` is the first, in the slots from the cursor's on."""
    e = start_function(module, hook_symbol("start_cluster"), I64, [POINTER, I64])
    context, index = e.function.args
    size = e.load_field(Context, context, "cluster_size")
    first = e.load_field(Context, context, "cursor")
    with e.counted(size) as rank:
        e.intrinsic(START_BLOCK, VOID, [context, e.b.add(index, rank)])
        move_on(e, context, e.b.add(e.b.add(first, rank), constant(1)), last=e.b.add(first, size), back=first)
    e.add_field(Context, context, "held", size)
    e.b.ret(constant(0))


@contextmanager
def _each_warp_of_cluster(e: Emitter, context: ir.Value) -> Generator[ir.Value]:
    """Runs for each warp of each block of the cluster that has not exited; gives its record."""
    with e.counted(e.load_field(Context, context, "cluster_size")) as rank:
        slot, number = _slot_of(e, context, rank)
        with (
            e.when(e.b.icmp_signed(">=", number, constant(0))),
            each_warp(e, e.load_field(Slot, slot, "warps"), e.load_field(Context, context, "warp_count")) as warp,
        ):
            yield warp


def _build_settle(module: ir.Module) -> None:
    """settle_cluster(context): where all live threads of the cluster have arrived, those that wait go on; gives 1."""
    e = start_function(module, hook_symbol("settle_cluster"), I64, [POINTER])
    (context,) = e.function.args
    with _each_warp_of_cluster(e, context) as warp:
        missing = e.b.and_(live_lanes(e, warp), e.b.not_(e.load_field(Warp, warp, "cluster_arrived", I32)))
        with e.when(e.b.icmp_unsigned("!=", missing, ir.Constant(I32, 0))):
            e.b.ret(constant(0))
    with _each_warp_of_cluster(e, context) as warp:
        e.b.store(constant(0), e.field(Warp, warp, "cluster_arrived"))
        release(e, warp, constant(CLUSTER_BARRIER), None)
    e.add_field(Context, context, "progress", constant(1))
    e.b.ret(constant(1))


def _build_some_ready(module: ir.Module) -> None:
    """some_ready(context): whether a warp of the cluster can run."""
    e = start_function(module, hook_symbol("some_ready"), I64, [POINTER])
    (context,) = e.function.args
    with _each_warp_of_cluster(e, context) as warp:
        ready = e.b.icmp_signed("==", e.load_field(Warp, warp, "status"), constant(Status.READY))
        with e.when(ready):
            e.b.ret(constant(1))
    e.b.ret(constant(0))
