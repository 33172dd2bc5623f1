"""Asynchronous copies into shared memory, and what their threads wait for: groups, and mbarriers that are told."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.emitter import (
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
from triptych.gpu.lower.primitives.emitter import lanes as lane_numbers
from triptych.gpu.lower.watching.accesses import ACCESS, EXTREMES, extreme
from triptych.gpu.lower.watching.completion import SWEEP, add_copy
from triptych.gpu.lower.watching.layout import LANE_BITS, TAG_BYTES, WatchedMemory, ended, watch
from triptych.gpu.lower.watching.reads import DROP
from triptych.gpu.lower.watching.records import (
    Arrival,
    Completion,
    HazardKind,
    WatchedBlock,
    WatchedWarp,
)

COPY, COMMIT, AWAIT, TRACK = (watch(name) for name in ("copy", "commit", "await", "track"))
GROUPS, BULK_GROUPS = "groups", "bulk"
"""Those of `cp.async`, and those of bulk copies: the fields of `WatchedWarp`, before `_done` where they are done."""
_NO_LANES, _ALL_LANES = ir.Constant(I32, 0), 0xFFFF_FFFF


def build_copies(module: ir.Module) -> None:
    """Emits `COPY`, `TRACK`, and of both kinds of groups `COMMIT` and `AWAIT`."""
    _build_copy(module)
    _build_track(module)
    for kind in (GROUPS, BULK_GROUPS):
        _build_commit(module, kind)
        _build_await(module, kind)


def next_number(memory: WatchedMemory) -> ir.Value:
    """The number of a new copy into a block's shared memory; the first one's is 1."""
    memory.e.add_field(WatchedBlock, memory.block(), "copies", constant(1))
    return memory.e.load_field(WatchedBlock, memory.block(), "copies")


def tag_of(e: Emitter, copy: ir.Value, lane: ir.Value) -> ir.Value:
    """The tag of a copy that a lane issued."""
    return e.b.trunc(e.b.or_(e.b.shl(copy, constant(LANE_BITS)), lane), I32)


# --- Copies of warps ------------------------------------------------------------------------------------------------


def _build_copy(module: ir.Module) -> None:
    """copy(context, site, mask, targets, size): `cp.async` of `size` bytes by each lane of a mask."""
    e = start_function(module, COPY, VOID, [POINTER, POINTER, I32, vector(I32), I64])
    context, site, mask, targets, size = e.function.args
    memory = WatchedMemory(e, context)
    _copy_together(memory)
    e.intrinsic(ACCESS, VOID, [context, site, mask, targets, size, constant(HazardKind.WRITE)])
    inside = e.b.icmp_unsigned("<", targets, e.splat(e.b.trunc(memory.field("shared_size"), I32)))
    left = e.variable(I32, e.b.and_(mask, e.bits(inside)))
    groups, places = memory.read_lanes(memory.own_warp(), GROUPS), e.variable(vector(I32), targets)
    head, body, done = e.block("groups"), e.block("group"), e.block("done")
    e.b.branch(head)
    e.b.position_at_end(head)
    rest = e.get(left, I32)
    e.b.cbranch(e.b.icmp_unsigned("!=", rest, _NO_LANES), body, done)
    e.b.position_at_end(body)  # lanes that are in different groups are copies of their own
    group = e.b.extract_element(groups, e.count_trailing_zeros(rest))
    same = e.b.and_(e.bits(e.b.icmp_unsigned("==", groups, e.splat(group))), rest)
    _start_copy(memory, site, (same, targets, places), size, e.b.zext(group, I64))
    e.b.store(e.b.and_(rest, e.b.not_(same)), left)
    e.b.branch(head)
    e.b.position_at_end(done)
    e.b.ret_void()


def _copy_together(memory: WatchedMemory) -> None:
    """The short way: a full warp's neighbouring granules in free regions, all in one group; returns behind it."""
    e, b = memory.e, memory.b
    _, site, mask, targets, size = e.function.args
    groups = memory.read_lanes(memory.own_warp(), GROUPS)
    group, first = (b.extract_element(lanes, ir.Constant(I32, 0)) for lanes in (groups, targets))
    apart = b.mul(e.splat(b.trunc(size, I32)), lane_numbers(I32))
    alike = b.and_(
        b.icmp_unsigned("==", b.sub(targets, e.splat(first)), apart), b.icmp_unsigned("==", groups, e.splat(group))
    )
    together = b.and_(e.all_lanes(alike), b.icmp_unsigned("==", mask, ir.Constant(I32, -1)))
    low, shift = b.zext(first, I64), memory.field("watched_shift")
    high = b.add(low, b.mul(size, constant(WARP_SIZE)))
    together = b.and_(together, b.icmp_unsigned("<=", high, memory.field("shared_size")))
    together = b.and_(together, b.icmp_unsigned("==", b.lshr(size, shift), constant(1)))
    closed = b.and_(memory.regions(low, high), e.load_field(WatchedBlock, memory.block(), "closed", I32))
    together = b.and_(together, b.icmp_unsigned("==", closed, _NO_LANES))
    with e.when(together, likely=True):
        given = {"low": low, "high": high, "lanes": constant(_ALL_LANES), "amount": b.zext(group, I64)}
        copy = _write_down(memory, site, given)
        tags = b.or_(e.splat(tag_of(e, copy, constant(0))), lane_numbers(I32))
        b.store(tags, memory.tag(b.lshr(low, shift)), align=TAG_BYTES)
        b.ret_void()


def _write_down(memory: WatchedMemory, site: ir.Value, given: Mapping[str, ir.Value]) -> ir.Value:
    """A new copy in its warp's list; gives its number."""
    e, copy = memory.e, next_number(memory)
    pending = memory.copy(copy)
    known = {"site": memory.b.ptrtoint(site, I64), "number": copy, **given}
    memory.start(pending, constant(Completion.GROUP), known)
    add_copy(memory, pending, e.field(WatchedWarp, memory.own_warp(), "first"))
    return copy


def _start_copy(
    memory: WatchedMemory, site: ir.Value, request: tuple[ir.Value, ir.Value, ir.Value], size: ir.Value,
    group: ir.Value,
) -> None:  # fmt: skip
    """A copy of the lanes of a request (mask, targets, and where these lie in memory)."""
    e, b = memory.e, memory.b
    mask, targets, places = request
    chosen = e.from_bits(mask)
    low, high = (extreme(e, which, b.select(chosen, targets, number(vector(I32), other))) for which, other in EXTREMES)
    given = {"low": low, "high": b.add(high, size), "lanes": b.zext(mask, I64), "amount": group}
    copy = _write_down(memory, site, given)
    shift = memory.field("watched_shift")
    first = memory.tag(constant(0))
    more, is_full = b.sub(b.lshr(size, shift), constant(1)), b.icmp_unsigned("==", mask, ir.Constant(I32, -1))

    def tag_lane(lane: ir.Value) -> tuple[ir.Value, ir.Value]:
        target = b.zext(b.load(e.offset(places, b.shl(lane, constant(2))), typ=I32), I64)
        place, tag = e.offset(first, b.shl(b.lshr(target, shift), constant(2))), tag_of(e, copy, lane)
        b.store(tag, place)
        return place, tag

    with b.if_else(b.and_(is_full, b.icmp_unsigned("==", more, constant(0))), likely=True) as (full, other):
        with full:
            for lane in range(WARP_SIZE):
                tag_lane(constant(lane))
        with other, e.each_lane(mask) as lane:
            place, tag = tag_lane(lane)
            with e.counted(more) as i:
                b.store(tag, e.offset(place, b.shl(b.add(i, constant(1)), constant(2))))


def _build_commit(module: ir.Module, kind: str) -> None:
    """commit(context, mask): each lane's copies so far that are in no group yet are one."""
    e = start_function(module, f"{COMMIT}.{kind}", VOID, [POINTER, I32])
    context, mask = e.function.args
    memory = WatchedMemory(e, context)
    warp = memory.own_warp()
    one = e.b.zext(e.from_bits(mask), vector(I32))
    e.b.store(e.b.add(memory.read_lanes(warp, kind), one), memory.lanes_of(warp, kind), align=8)
    e.b.ret_void()


def _build_await(module: ir.Module, kind: str) -> None:
    """await(context, mask, newest): each lane waits for all of its groups but the newest ones, an i32."""
    e = start_function(module, f"{AWAIT}.{kind}", VOID, [POINTER, I32, I32])
    context, mask, newest = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    warp = memory.own_warp()
    before, waited = memory.read_lanes(warp, f"{kind}_done"), b.sub(memory.read_lanes(warp, kind), e.splat(newest))
    more = b.and_(b.icmp_signed(">", waited, before), e.from_bits(mask))
    b.store(b.select(more, waited, before), memory.lanes_of(warp, f"{kind}_done"), align=8)
    if kind == BULK_GROUPS:
        e.intrinsic(DROP, VOID, [context])
    else:
        ends = e.field(WatchedWarp, warp, "first")
        e.intrinsic(SWEEP, VOID, [context, memory.shared, ends, ir.Constant(I32, 1)])
    b.ret_void()


def _build_track(module: ir.Module) -> None:
    """track(context, mask, addresses): mbarriers are told when the lanes' copies so far are complete."""
    e = start_function(module, TRACK, VOID, [POINTER, I32, vector(I32)])
    context, mask, addresses = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    places, warp = e.variable(vector(I32), addresses), memory.own_warp()
    b.store(constant(1), e.field(WatchedBlock, memory.block(), "tells"))
    following = b.add(e.load_field(WatchedBlock, memory.block(), "copies"), constant(1))
    inside = e.bits(b.icmp_unsigned("<", addresses, e.splat(b.trunc(memory.field("shared_size"), I32))))
    with e.each_lane(b.and_(mask, inside)) as lane:
        address = b.zext(b.load(e.offset(places, b.shl(lane, constant(2))), typ=I32), I64)
        place = b.add(memory.shared, address)
        phase = b.zext(ended(e, memory.phases(place)), I64)
        values = {"place": place, "amount": phase, "number": following, "lanes": constant(0)}
        arrivals = e.load_field(WatchedWarp, warp, "arrivals")
        latest = memory.arrival(warp, b.sub(arrivals, constant(1)))
        same = b.icmp_unsigned("!=", arrivals, constant(0))
        for name in ("place", "amount", "number"):
            same = b.and_(same, b.icmp_unsigned("==", e.load_field(Arrival, latest, name), values[name]))
        with e.when(b.not_(same)):
            for name, value in values.items():
                b.store(value, e.field(Arrival, memory.arrival(warp, arrivals), name))
            e.add_field(WatchedWarp, warp, "arrivals", constant(1))
        latest = memory.arrival(warp, b.sub(e.load_field(WatchedWarp, warp, "arrivals"), constant(1)))
        bit = b.shl(constant(1), lane)
        b.store(b.or_(e.load_field(Arrival, latest, "lanes"), bit), e.field(Arrival, latest, "lanes"))
    b.ret_void()
