"""Whether an asynchronous copy or reader is done, and what is written down of a hazard."""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from triptych.gpu.isa.tensor.matrix_descriptors import GROUP_WARPS
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
from triptych.gpu.lower.records import Context
from triptych.gpu.lower.watching.layout import LANE_BITS, SCANNED, WatchedMemory, lane_of, seen, watch
from triptych.gpu.lower.watching.records import (
    ARRIVALS_KEPT,
    HAZARDS_KEPT,
    Arrival,
    Completion,
    Hazard,
    Pending,
    WatchedBlock,
    WatchedWarp,
)

DONE, NOTE, EXAMINE, SWEEP = (watch(name) for name in ("done", "note", "examine", "sweep"))
_ALL = ir.Constant(I32, -1)
_NONE = ir.Constant(I32, 0)


def build_completion(module: ir.Module) -> None:
    """Emits `DONE`, `NOTE`, `EXAMINE` and `SWEEP`."""
    _build_done(module)
    _build_note(module)
    _build_examine(module)
    _build_sweep(module)


def done_lanes(e: Emitter, context: ir.Value, shared: ir.Value, pending: ir.Value) -> ir.Value:
    """Calls `DONE`."""
    return e.intrinsic(DONE, I32, [context, shared, pending])


def _build_done(module: ir.Module) -> None:
    """done(context, shared, pending): the lanes whose copies, or readers, at the block's shared memory are done."""
    e = start_function(module, DONE, I32, [POINTER, I64, POINTER])
    context, shared, pending = e.function.args
    memory = WatchedMemory(e, context, shared)
    amount = e.load_field(Pending, pending, "amount", I32)
    cases = {kind: e.block(kind.name.lower()) for kind in Completion}
    other = e.block("other")
    switch = e.b.switch(e.load_field(Pending, pending, "completion"), other)
    for kind, block in cases.items():
        switch.add_case(constant(kind), block)
    e.b.position_at_end(other)
    e.b.ret(_ALL)

    def after(done: ir.Value) -> ir.Value:
        """Whether as many are done as take this one along; counts may wrap around."""
        own = e.splat(amount) if isinstance(done.type, ir.VectorType) else amount
        return e.b.icmp_signed(">", e.b.sub(done, own), number(done.type, 0))

    e.b.position_at_end(cases[Completion.MBARRIER])
    phases = memory.phases(e.load_field(Pending, pending, "place"))
    e.b.ret(e.b.select(after(e.b.load(seen(e, phases), typ=I32)), _ALL, _NONE))
    e.b.position_at_end(cases[Completion.PRODUCT_GROUP])
    group = e.b.and_(e.load_field(Pending, pending, "warp"), constant(-GROUP_WARPS))
    products = e.load_field(WatchedWarp, memory.warp(group), "products_done", I32)
    e.b.ret(e.b.select(after(products), _ALL, _NONE))
    e.b.position_at_end(cases[Completion.BULK_GROUP])
    warp = memory.warp(e.load_field(Pending, pending, "warp"))
    e.b.ret(e.bits(after(memory.read_lanes(warp, "bulk_done"))))
    e.b.position_at_end(cases[Completion.GROUP])
    warp = memory.warp(e.load_field(Pending, pending, "warp"))
    found = e.variable(I32, e.bits(after(memory.read_lanes(warp, "groups_done"))))
    _add_arrivals(e, memory, warp, pending, found)
    e.b.ret(e.get(found, I32))


def _add_arrivals(e: Emitter, memory: WatchedMemory, warp: ir.Value, pending: ir.Value, found: ir.Value) -> None:
    """The lanes whose copies so far an mbarrier was told of, the end of whose phase somebody saw."""
    own, arrivals = e.load_field(Pending, pending, "number"), e.load_field(WatchedWarp, warp, "arrivals")
    kept = e.intrinsic("llvm.umin.i64", I64, [arrivals, constant(ARRIVALS_KEPT)])
    with e.counted(kept) as i:
        arrival = memory.arrival(warp, i)
        phases = memory.phases(e.load_field(Arrival, arrival, "place"))
        ahead = e.b.sub(e.b.load(seen(e, phases), typ=I32), e.load_field(Arrival, arrival, "amount", I32))
        is_over = e.b.icmp_signed(">", ahead, _NONE)
        covers = e.b.icmp_unsigned(">", e.load_field(Arrival, arrival, "number"), own)
        lanes = e.load_field(Arrival, arrival, "lanes", I32)
        lanes = e.b.select(e.b.and_(is_over, covers), lanes, _NONE)
        e.b.store(e.b.or_(e.get(found, I32), lanes), found)


def _count_regions(memory: WatchedMemory, pending: ir.Value, step: int) -> ir.Value:
    """Counts a copy among those of its regions, or no more: `step` is 1 or -1. Gives those that it leaves, as bits."""
    e, b, counts = memory.e, memory.b, memory.e.field(WatchedBlock, memory.block(), "counts_0")
    low, last = e.load_field(Pending, pending, "low"), b.sub(e.load_field(Pending, pending, "high"), constant(1))
    first, left = memory.region_of(low), e.variable(I64, constant(0))
    with e.counted(b.add(b.sub(memory.region_of(last), first), constant(1))) as i:
        region = b.add(first, i)
        place = e.offset(counts, b.shl(region, constant(2)))
        count = b.add(b.load(place, typ=I32), ir.Constant(I32, step))
        b.store(count, place)
        empty = b.zext(b.icmp_unsigned("==", count, _NONE), I64)
        b.store(b.or_(e.get(left, I64), b.shl(empty, region)), left)
    return e.get(left, I64)


def add_copy(memory: WatchedMemory, pending: ir.Value, ends: ir.Value) -> None:
    """Puts a copy that is written down at the end of a list (first, last)."""
    e, b = memory.e, memory.b
    _count_regions(memory, pending, 1)
    regions = memory.regions(e.load_field(Pending, pending, "low"), e.load_field(Pending, pending, "high"))
    for name in ("pending", "closed"):
        place = e.field(WatchedBlock, memory.block(), name)
        b.store(b.or_(b.load(place, typ=I64), b.zext(regions, I64)), place)
    own, last = e.load_field(Pending, pending, "number"), b.load(e.offset(ends, 8), typ=I64)
    before = memory.copy(last)
    known = b.icmp_unsigned("==", e.load_field(Pending, before, "number"), last)
    known = b.and_(known, b.icmp_unsigned("!=", b.load(ends, typ=I64), constant(0)))
    b.store(own, b.select(known, e.field(Pending, before, "next"), ends))
    b.store(own, e.offset(ends, 8))


def _build_note(module: ir.Module) -> None:
    """note(context, shared, kind, site, lane, address, pending, other_lane): keeps the first of its kind and sites."""
    e = start_function(module, NOTE, VOID, [POINTER, I64, I64, POINTER, I64, I64, POINTER, I64])
    context, shared, kind, site, lane, address, pending, other_lane = e.function.args
    block, site = e.load_field(Context, context, "block_index"), e.b.ptrtoint(site, I64)
    hazards = e.b.inttoptr(e.load_field(Context, context, "hazards"), POINTER)
    count = e.load_field(Context, context, "hazard_count")
    place = e.variable(POINTER, e.offset(hazards, e.b.mul(count, constant(Hazard.size()))))
    other, known = e.load_field(Pending, pending, "site"), e.block("known")
    with e.counted(count) as i:
        hazard = e.offset(hazards, e.b.mul(i, constant(Hazard.size())))
        values = {"kind": kind, "site": site, "other": other}
        same = [e.b.icmp_unsigned("==", e.load_field(Hazard, hazard, name), value) for name, value in values.items()]
        with e.when(reduce(e.b.and_, same)):
            e.b.store(hazard, place)
            with e.when(e.b.icmp_signed("<=", e.load_field(Hazard, hazard, "block"), block)):
                e.b.ret_void()
            e.b.branch(known)
            e.b.position_at_end(e.block("unreached"))
    with e.when(e.b.icmp_unsigned(">=", count, constant(HAZARDS_KEPT))):
        e.b.ret_void()
    e.b.store(e.b.add(count, constant(1)), e.field(Context, context, "hazard_count"))
    e.b.branch(known)
    e.b.position_at_end(known)
    found = e.get(place, POINTER)
    memory = WatchedMemory(e, context, shared)
    groups = memory.lanes_of(memory.warp(e.load_field(Pending, pending, "warp")), "groups")
    committed = e.b.load(e.offset(groups, e.b.shl(other_lane, constant(2))), typ=I32)
    values = {
        "kind": kind, "site": site, "block": block, "warp": e.load_field(Context, context, "warp_index"), "lane": lane,
        "address": address, "other": other, "completion": e.load_field(Pending, pending, "completion"),
        "other_block": e.load_field(Pending, pending, "block"), "other_warp": e.load_field(Pending, pending, "warp"),
        "other_lane": other_lane, "amount": e.load_field(Pending, pending, "amount"),
        "place": e.b.sub(e.load_field(Pending, pending, "place"), shared), "committed": e.b.zext(committed, I64),
    }  # fmt: skip
    for name, value in values.items():
        e.b.store(value, e.field(Hazard, found, name))
    e.b.ret_void()


def _build_examine(module: ir.Module) -> None:
    """examine(context, shared, kind, site, lane, address, granule): the tag, which is not 0, becomes 0.

    Where the lane's copy is not complete, that is noted as a hazard.
    """
    e = start_function(module, EXAMINE, VOID, [POINTER, I64, I64, POINTER, I64, I64, I64])
    context, shared, kind, site, lane, address, granule = e.function.args
    memory = WatchedMemory(e, context, shared)
    place = memory.tag(granule)
    tag = e.b.zext(e.b.load(place, typ=I32), I64)
    e.b.store(_NONE, place)
    named, owner = e.b.lshr(tag, constant(LANE_BITS)), e.b.and_(tag, constant((1 << LANE_BITS) - 1))
    pending = memory.copy(named)
    with e.when(e.b.icmp_unsigned("!=", e.load_field(Pending, pending, "number"), named), likely=False):
        e.b.ret_void()  # so many copies were issued since that nobody knows any more
    done = done_lanes(e, context, shared, pending)
    with e.when(e.b.not_(lane_of(e, done, owner)), likely=False):
        e.intrinsic(NOTE, VOID, [context, shared, kind, site, lane, address, pending, owner])
    e.b.ret_void()


def _build_sweep(module: ir.Module) -> None:
    """sweep(context, shared, list, in_order): takes complete copies out of a list (first, last), and their tags away.

    `in_order`: up to the first that is not complete.
    """
    e = start_function(module, SWEEP, VOID, [POINTER, I64, POINTER, I32])
    context, shared, ends, in_order = e.function.args
    memory, b = WatchedMemory(e, context, shared), e.b
    link, before = e.variable(POINTER, ends), e.variable(I64, constant(0))
    head, body, keep, drop, done = (e.block(name) for name in ("head", "body", "keep", "drop", "done"))
    b.branch(head)
    b.position_at_end(head)
    named = b.load(e.get(link, POINTER), typ=I64)
    b.cbranch(b.icmp_unsigned("==", named, constant(0)), done, body)
    b.position_at_end(body)
    pending = memory.copy(named)
    with e.when(b.icmp_unsigned("!=", e.load_field(Pending, pending, "number"), named), likely=False):
        b.store(constant(0), e.get(link, POINTER))  # so many copies were issued since that the list is lost
        b.branch(done)
    lanes = e.load_field(Pending, pending, "lanes", I32)
    open_ = b.and_(b.not_(done_lanes(e, context, shared, pending)), lanes)
    b.cbranch(b.icmp_unsigned("==", open_, _NONE), drop, keep)
    b.position_at_end(keep)
    b.store(e.field(Pending, pending, "next"), link)
    b.store(named, before)
    b.cbranch(b.icmp_unsigned("!=", in_order, _NONE), done, head)
    b.position_at_end(drop)
    _settle(e, memory, pending, named)
    following = e.load_field(Pending, pending, "next")
    b.store(following, e.get(link, POINTER))
    with e.when(b.icmp_unsigned("==", following, constant(0))):
        b.store(e.get(before, I64), e.offset(ends, 8))
    b.branch(head)
    b.position_at_end(done)
    b.ret_void()


def _settle(e: Emitter, memory: WatchedMemory, pending: ir.Value, wanted: ir.Value) -> None:
    """All tags of a copy, which lie between two granules, become 0, and its regions may become free."""
    left = _count_regions(memory, pending, -1)
    with e.when(e.b.icmp_unsigned("!=", left, constant(0))):
        still = e.b.and_(e.load_field(WatchedBlock, memory.block(), "pending"), e.b.not_(left))
        e.b.store(still, e.field(WatchedBlock, memory.block(), "pending"))
        memory.close()
    first = memory.granule_of(e.load_field(Pending, pending, "low"))
    last = memory.granule_of(e.b.sub(e.load_field(Pending, pending, "high"), constant(1)))
    wide = vector(I32, SCANNED)
    wanted = e.splat(e.b.trunc(wanted, I32), SCANNED)
    count = e.b.add(e.b.sub(last, first), constant(SCANNED))
    with e.counted(e.b.udiv(count, constant(SCANNED))) as i:
        place = memory.tag(e.b.add(first, e.b.mul(i, constant(SCANNED))))
        tags = e.b.load(place, align=4, typ=wide)
        same = e.b.icmp_unsigned("==", e.b.lshr(tags, number(wide, LANE_BITS)), wanted)
        e.b.store(e.b.select(same, number(wide, 0), tags), place, align=4)
