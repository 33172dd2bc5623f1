"""The barriers of a block as generated code: threads arrive, barriers complete, and those that wait there go on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from triptych.gpu.hardware import BARRIERS, WARP_SIZE
from triptych.gpu.lower.primitives.emitter import (
    I1,
    I32,
    I64,
    POINTER,
    VOID,
    Emitter,
    constant,
    number,
    start_function,
    vector,
)
from triptych.gpu.lower.records import (
    BARRIER_SHIFT,
    EXITED,
    WAITING,
    Barrier,
    Context,
    FaultKind,
    Status,
    Warp,
)
from triptych.gpu.lower.scheduling.services import record_fault

ARRIVE = "triptych.arrive"
SETTLE = "triptych.settle"
_COMPLETE = "triptych.complete"
CLUSTER_BARRIER = BARRIERS
"""How lanes are marked that wait at the barrier of their cluster, which has no record: warps say who has arrived."""
COUNT, EVERY, ANY = range(3)
"""What of a reduction a lane wants: `Warp.results` holds 4 · the place in the frame + one of these."""


def build_barriers() -> ir.Module:
    """The module with `triptych.arrive` and `triptych.settle`."""
    module = ir.Module(name="triptych.barriers")
    _build_complete(module)
    _build_arrive(module)
    _build_settle(module)
    return module


def _place_of(e: Emitter, context: ir.Value, index: ir.Value) -> ir.Value:
    table = e.b.inttoptr(e.load_field(Context, context, "barriers"), POINTER)
    return e.offset(table, e.b.mul(index, constant(Barrier.size())))


def _build_arrive(module: ir.Module) -> None:
    """arrive(context, warp, number, threads, amount, lanes, holds, place): 1 where the launch has to stop.

    `threads` complete the barrier, -1: all of the block. `amount` of them arrive, by `lanes` lanes; a reduction's
    predicate holds in `holds` of these, -1 where there is none.
    """
    e = start_function(module, ARRIVE, I32, [POINTER, POINTER, *([I64] * 6)])
    context, _, index, threads, amount, lanes, holds, at = e.function.args
    _arrive_simply(e)
    _check(e, context, FaultKind.BARRIER_NUMBER, e.b.icmp_unsigned(">=", index, constant(BARRIERS)), at, index)
    partial = e.b.icmp_signed("!=", e.b.and_(threads, constant(WARP_SIZE - 1)), constant(0))
    wrong = e.b.or_(partial, e.b.icmp_signed("==", threads, constant(0)))
    wrong = e.b.and_(wrong, e.b.icmp_signed("!=", threads, constant(-1)))
    _check(e, context, FaultKind.BARRIER_THREADS, wrong, at, threads)
    place, bit = _place_of(e, context, index), e.b.shl(constant(1), index)
    arrivals = e.load_field(Context, context, "arrivals")
    first = e.b.icmp_unsigned("==", e.b.and_(arrivals, bit), constant(0))
    with e.when(first):
        e.b.store(e.b.or_(arrivals, bit), e.field(Context, context, "arrivals"))
        e.start_record(Barrier, place, {"threads": threads, "place": at})
    other = e.b.icmp_signed("!=", e.load_field(Barrier, place, "threads"), threads)
    before = e.load_field(Barrier, place, "place")
    _check(e, context, FaultKind.BARRIER_MISMATCH, other, at, before)
    e.add_field(Barrier, place, "arrived", amount)
    e.add_field(Barrier, place, "live", lanes)
    with e.when(e.b.icmp_signed(">=", holds, constant(0))):
        _reduce(e, place, lanes, holds)
    full = e.b.icmp_signed(">=", e.load_field(Barrier, place, "arrived"), threads)
    with e.when(e.b.and_(full, e.b.icmp_signed(">", threads, constant(0)))):
        e.intrinsic(_COMPLETE, VOID, [context, index])
    e.b.ret(ir.Constant(I32, 0))


def _arrive_simply(e: Emitter) -> None:
    """What `__syncthreads` comes to but for the first warp: all threads of the block, nothing to reduce."""
    context, _, index, threads, amount, lanes, holds, _ = e.function.args
    arrivals = e.load_field(Context, context, "arrivals")
    plain = e.b.icmp_signed("==", e.b.and_(threads, holds), constant(-1))  # both are
    # A number beyond 63 would shift too far: the place is looked at only where the number is that of a barrier.
    with e.when(e.b.and_(plain, e.b.icmp_unsigned("<", index, constant(BARRIERS))), likely=True):
        used = e.b.trunc(e.b.lshr(arrivals, index), I1)
        place = _place_of(e, context, index)
        same = e.b.icmp_signed("==", e.load_field(Barrier, place, "threads"), constant(-1))
        with e.when(e.b.and_(used, same), likely=True):
            e.add_field(Barrier, place, "arrived", amount)
            e.add_field(Barrier, place, "live", lanes)
            e.b.ret(ir.Constant(I32, 0))


def _check(e: Emitter, context: ir.Value, kind: FaultKind, wrong: ir.Value, at: ir.Value, detail: ir.Value) -> None:
    with e.when(wrong, likely=False):
        record_fault(e, context, kind, place=at, detail=detail)
        e.b.ret(ir.Constant(I32, 1))


def _reduce(e: Emitter, place: ir.Value, lanes: ir.Value, holds: ir.Value) -> None:
    e.b.store(constant(1), e.field(Barrier, place, "reduces"))
    e.add_field(Barrier, place, "count", holds)
    every = e.b.zext(e.b.icmp_signed("==", holds, lanes), I64)
    some = e.b.zext(e.b.icmp_signed(">", holds, constant(0)), I64)
    e.b.store(e.b.and_(e.load_field(Barrier, place, "every"), every), e.field(Barrier, place, "every"))
    e.b.store(e.b.or_(e.load_field(Barrier, place, "any"), some), e.field(Barrier, place, "any"))


def _build_complete(module: ir.Module) -> None:
    """complete(context, number): those who wait at the barrier go on, with the result of its reduction."""
    e = start_function(module, _COMPLETE, VOID, [POINTER, I64])
    context, index = e.function.args
    place, bit = _place_of(e, context, index), e.b.shl(constant(1), index)
    arrivals = e.load_field(Context, context, "arrivals")
    e.b.store(e.b.and_(arrivals, e.b.not_(bit)), e.field(Context, context, "arrivals"))
    e.add_field(Context, context, "progress", constant(1))
    with each_warp(e, *_warps_of(e, context)) as warp:
        release(e, warp, index, place)
    e.b.ret_void()


@contextmanager
def each_warp(e: Emitter, warps: ir.Value, count: ir.Value) -> Generator[ir.Value]:
    """Runs for each warp of a block, whose records begin at `warps`, an i64; gives its record."""
    first = e.b.inttoptr(warps, POINTER)
    with e.counted(count) as i:
        yield e.offset(first, e.b.mul(i, constant(Warp.size())))


def _warps_of(e: Emitter, context: ir.Value) -> tuple[ir.Value, ir.Value]:
    return e.load_field(Context, context, "warps"), e.load_field(Context, context, "warp_count")


def release(e: Emitter, warp: ir.Value, index: ir.Value, place: ir.Value | None) -> None:
    """Lanes of a warp that wait at a barrier go on; `place` is its record, where it has one."""
    together = e.b.icmp_signed("==", e.load_field(Warp, warp, "mode"), constant(0))
    with e.b.if_else(together) as (whole, parted):
        with whole:
            waits = e.b.icmp_signed("==", e.load_field(Warp, warp, "status"), constant(Status.WAITING))
            here = e.b.icmp_signed("==", e.load_field(Warp, warp, "barrier"), index)
            with e.when(e.b.and_(waits, here)):
                e.b.store(constant(Status.READY), e.field(Warp, warp, "status"))
                _deliver(e, place, warp, e.load_field(Warp, warp, "mask", I32))
        with parted:
            _release_lanes(e, place, warp, index)


def _release_lanes(e: Emitter, place: ir.Value | None, warp: ir.Value, index: ir.Value) -> None:
    lanes = e.field(Warp, warp, "next_blocks_0")
    following = e.b.load(lanes, align=8, typ=vector(I32))
    shifted = e.b.shl(e.b.trunc(index, I32), ir.Constant(I32, BARRIER_SHIFT))
    mark = e.splat(e.b.or_(shifted, ir.Constant(I32, WAITING)))
    low = number(vector(I32), (1 << BARRIER_SHIFT) - 1)
    here = e.b.icmp_unsigned("==", e.b.and_(following, e.b.not_(low)), mark)
    released = e.bits(e.b.and_(here, e.b.icmp_unsigned("!=", following, number(vector(I32), EXITED))))
    with e.when(e.b.icmp_unsigned("!=", released, ir.Constant(I32, 0))):
        woken = e.b.select(e.from_bits(released), e.b.and_(following, low), following)
        e.b.store(woken, lanes, align=8)
        e.b.store(constant(Status.READY), e.field(Warp, warp, "status"))
        _deliver(e, place, warp, released)


def _deliver(e: Emitter, place: ir.Value | None, warp: ir.Value, lanes: ir.Value) -> None:
    """The result of a reduction into the frames of the lanes that wait for it."""
    if place is None:
        return
    with e.when(e.b.icmp_signed("!=", e.load_field(Barrier, place, "reduces"), constant(0)), likely=False):
        frame = e.b.inttoptr(e.load_field(Warp, warp, "frame"), POINTER)
        wanted = e.field(Warp, warp, "results_0")
        with e.each_lane(lanes) as lane:
            four = e.b.shl(lane, constant(2))
            packed = e.b.sext(e.b.load(e.offset(wanted, four), typ=I32), I64)
            with e.when(e.b.icmp_signed(">=", packed, constant(0))):
                kind = e.b.and_(packed, constant(3))
                # A predicate's lanes are 0 or -1 in the frame.
                every, some = (e.b.sub(constant(0), e.load_field(Barrier, place, name)) for name in ("every", "any"))
                value = e.b.select(e.b.icmp_signed("==", kind, constant(EVERY)), every, some)
                counted = e.b.icmp_signed("==", kind, constant(COUNT))
                value = e.b.select(counted, e.load_field(Barrier, place, "count"), value)
                there = e.offset(frame, e.b.add(e.b.lshr(packed, constant(2)), four))
                e.b.store(e.b.trunc(value, I32), there)


def _build_settle(module: ir.Module) -> None:
    """settle(context): completes the barriers at which all live threads of the block wait; gives how many."""
    e = start_function(module, SETTLE, I64, [POINTER])
    (context,) = e.function.args
    live = _count_live(e, context)
    completed = e.variable(I64, constant(0))
    with e.each_lane(e.load_field(Context, context, "arrivals", I32)) as index:
        place = _place_of(e, context, index)
        whole = e.b.icmp_signed("<", e.load_field(Barrier, place, "threads"), constant(0))
        full = e.b.icmp_signed(">=", e.load_field(Barrier, place, "live"), live)
        with e.when(e.b.and_(whole, full)):
            e.intrinsic(_COMPLETE, VOID, [context, index])
            e.b.store(e.b.add(e.get(completed, I64), constant(1)), completed)
    e.b.ret(e.get(completed, I64))


def _count_live(e: Emitter, context: ir.Value) -> ir.Value:
    live = e.variable(I64, constant(0))
    with each_warp(e, *_warps_of(e, context)) as warp:
        e.b.store(e.b.add(e.get(live, I64), e.b.zext(e.count_ones(live_lanes(e, warp)), I64)), live)
    return e.get(live, I64)


def live_lanes(e: Emitter, warp: ir.Value) -> ir.Value:
    """The lanes of a warp that have not ended, an i32."""
    lanes = e.variable(I32, ir.Constant(I32, 0))
    with e.when(e.b.icmp_signed("!=", e.load_field(Warp, warp, "status"), constant(Status.DONE))):
        e.b.store(e.load_field(Warp, warp, "mask", I32), lanes)
        with e.when(e.b.icmp_signed("!=", e.load_field(Warp, warp, "mode"), constant(0))):
            following = e.b.load(e.field(Warp, warp, "next_blocks_0"), align=8, typ=vector(I32))
            e.b.store(e.bits(e.b.icmp_unsigned("!=", following, number(vector(I32), EXITED))), lanes)
    return e.get(lanes, I32)
