"""What generated code asks of its worker: to record a fault, to find a storage, to go on after many iterations."""

from __future__ import annotations

from contextlib import AbstractContextManager

from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Emitter, constant, start_function, vector
from triptych.gpu.lower.records import (
    FUEL,
    GRANULE_BYTES,
    MEMORY_SIZES,
    Context,
    FaultKind,
    Misuse,
    Site,
    StorageRow,
    Warp,
)

FAULT = "triptych.fault"
MISUSE = "triptych.misuse"
RESOLVE = "triptych.resolve"
REFUEL = "triptych.refuel"
SPEND = "triptych.spend"
_NONE, _NO_SITE = constant(0), ir.Constant(POINTER, None)


def build_services() -> ir.Module:
    """The module with all five functions."""
    module = ir.Module(name="triptych.services")
    _build_fault(module)
    _build_misuse(module)
    _build_resolve(module)
    _build_refuel(module)
    _build_spend(module)
    return module


def _build_fault(module: ir.Module) -> None:
    """fault(context, kind, lane, place, detail, site, address, size): keeps a worker's first, stops later blocks."""
    e = start_function(module, FAULT, VOID, [POINTER, *([I64] * 4), POINTER, I64, I64])
    context, kind, lane, place, detail, site, address, size = e.function.args
    none = e.b.icmp_signed("==", e.load_field(Context, context, "fault_kind"), constant(0))
    with e.when(none):
        block = e.load_field(Context, context, "block_index")
        values = {
            "fault_kind": kind, "fault_block": block, "fault_warp": e.load_field(Context, context, "warp_index"),
            "fault_lane": lane, "fault_place": place, "fault_detail": detail,
            "fault_site": e.b.ptrtoint(site, I64), "fault_address": address, "fault_size": size,
        }  # fmt: skip
        for name, value in values.items():
            e.b.store(value, e.field(Context, context, name))
        _close_memory(e, context)
        stop = e.b.inttoptr(e.load_field(Context, context, "stop_block"), POINTER)
        e.b.atomic_rmw("min", stop, e.b.sub(block, constant(1)), "monotonic")
    warps = e.b.inttoptr(e.load_field(Context, context, "warps"), POINTER)
    index = e.load_field(Context, context, "warp_index")
    warp = e.offset(warps, e.b.mul(index, constant(Warp.size())))
    e.b.store(constant(0), e.field(Warp, warp, "fuel"))
    e.b.ret_void()


def record_fault(
    e: Emitter,
    context: ir.Value,
    kind: FaultKind | ir.Value,
    *,
    lane: ir.Value = _NONE,
    place: ir.Value = _NONE,
    detail: ir.Value = _NONE,
    site: ir.Value = _NO_SITE,
    address: ir.Value = _NONE,
    size: ir.Value = _NONE,
) -> None:
    """Records a fault of the warp that runs.

    `lane` did it. `place` is the instruction's (`Instruction.place`), `detail` what the kind tells of it; an access has
    its `site` instead, and the `address` and the `size` in bytes that it reached for.
    """
    code = constant(kind) if isinstance(kind, FaultKind) else kind
    e.intrinsic(FAULT, VOID, [context, code, lane, place, detail, site, address, size])


def _build_misuse(module: ir.Module) -> None:
    """misuse(context, place, kind, lanes, sources): keeps the first `Misuse` at a place, the lowest lane's of these."""
    e = start_function(module, MISUSE, VOID, [POINTER, POINTER, I64, I32, vector(I32)])
    context, place, kind, lanes, sources = e.function.args
    first = e.count_trailing_zeros(lanes)
    values = {
        "block": e.load_field(Context, context, "block_index"), "warp": e.load_field(Context, context, "warp_index"),
        "kind": kind, "lane": e.b.zext(first, I64), "source": e.b.zext(e.b.extract_element(sources, first), I64),
    }  # fmt: skip
    packed = constant(0)
    for name, bits in Misuse.BITS.items():
        packed = e.b.or_(e.b.shl(packed, constant(bits)), values[name])
    known = e.b.load(place, typ=I64)
    before = e.b.icmp_unsigned("<", packed, known)
    none = e.b.icmp_unsigned("==", known, constant(0))
    e.b.store(e.b.select(e.b.or_(before, none), packed, known), place)
    e.b.ret_void()


def _close_memory(e: Emitter, context: ir.Value) -> None:
    """No later access of this worker finds memory: what runs on until the next look at the fuel changes nothing."""
    for name in MEMORY_SIZES:
        e.b.store(constant(0), e.field(Context, context, name))
    sites = e.b.inttoptr(e.load_field(Context, context, "sites"), POINTER)
    with e.counted(e.load_field(Context, context, "site_count")) as i:
        site = e.offset(sites, e.b.mul(i, constant(Site.size())))
        e.b.store(constant(1), e.field(Site, site, "low"))
        e.b.store(constant(0), e.field(Site, site, "high"))


def _build_resolve(module: ir.Module) -> None:
    """resolve(context, site, low, size, write): the storage that holds the bytes becomes the site's; else the fault."""
    e = start_function(module, RESOLVE, I64, [POINTER, POINTER, I64, I64, I64])
    context, site, low, size, write = e.function.args
    rows = e.b.inttoptr(e.load_field(Context, context, "storages"), POINTER)
    left = e.variable(I64, constant(0))
    right = e.variable(I64, e.load_field(Context, context, "storage_count"))
    head, body, found = e.block("head"), e.block("body"), e.block("found")
    e.b.branch(head)
    e.b.position_at_end(head)
    span = e.b.sub(e.get(right, I64), e.get(left, I64))
    e.b.cbranch(e.b.icmp_signed(">", span, constant(0)), body, found)
    e.b.position_at_end(body)
    middle = e.b.add(e.get(left, I64), e.b.ashr(span, constant(1)))
    row = e.offset(rows, e.b.mul(middle, constant(StorageRow.size())))
    above = e.b.icmp_unsigned("<=", e.load_field(StorageRow, row, "low"), low)
    e.b.store(e.b.select(above, e.b.add(middle, constant(1)), e.get(left, I64)), left)
    e.b.store(e.b.select(above, e.get(right, I64), middle), right)
    e.b.branch(head)
    e.b.position_at_end(found)
    index = e.b.sub(e.get(left, I64), constant(1))
    with e.when(e.b.icmp_signed("<", index, constant(0))):
        e.b.ret(constant(FaultKind.OUT_OF_BOUNDS))
    row = e.offset(rows, e.b.mul(index, constant(StorageRow.size())))
    end = e.b.add(low, size)
    high = e.load_field(StorageRow, row, "high")
    inside = e.b.and_(e.b.icmp_unsigned("<=", end, high), e.b.icmp_unsigned("<=", low, end))
    with e.when(e.b.not_(inside)):
        e.b.ret(constant(FaultKind.OUT_OF_BOUNDS))
    is_write = e.b.icmp_signed("!=", write, constant(0))
    locked = e.b.icmp_signed("==", e.load_field(StorageRow, row, "writable"), constant(0))
    with e.when(e.b.and_(is_write, locked)):
        e.b.ret(constant(FaultKind.READ_ONLY))
    e.b.store(e.load_field(StorageRow, row, "delta"), e.field(Site, site, "delta"))
    _find_view(e, row, site, low, end)
    _find_part(e, row, site, low, end)
    maps = [e.load_field(StorageRow, row, name) for name in ("write_map", "read_map")]
    e.b.store(e.b.select(is_write, *maps), e.field(Site, site, "touched"))
    e.b.ret(constant(0))


def _find_view(e: Emitter, row: ir.Value, site: ir.Value, low: ir.Value, end: ir.Value) -> None:
    """The storage becomes the site's; where it has a view, that does, and what reaches outside of the view is noted."""
    whole = {name: e.load_field(StorageRow, row, name) for name in ("low", "high")}
    for name, bound in whole.items():
        e.b.store(bound, e.field(Site, site, name))
    view_high = e.load_field(StorageRow, row, "view_high")
    with e.when(e.b.icmp_signed("!=", view_high, constant(0)), likely=False):
        view_low = e.load_field(StorageRow, row, "view_low")
        before, after = e.b.icmp_unsigned("<", low, view_low), e.b.icmp_unsigned(">", end, view_high)
        outside = e.b.or_(before, after)
        for name, bound in {"low": view_low, "high": view_high}.items():
            e.b.store(e.b.select(outside, whole[name], bound), e.field(Site, site, name))
        known = e.load_field(Site, site, "left_view")
        behind = e.b.select(e.b.icmp_unsigned(">", low, view_high), low, view_high)
        first = e.b.and_(outside, e.b.icmp_signed("==", known, constant(0)))
        e.b.store(e.b.select(first, e.b.select(before, low, behind), known), e.field(Site, site, "left_view"))


def _find_part(e: Emitter, row: ir.Value, site: ir.Value, low: ir.Value, end: ir.Value) -> None:
    """In a storage of many allocations, the one that holds the bytes becomes the site's; else it is a fault."""
    parts = e.load_field(StorageRow, row, "parts")
    with e.when(e.b.icmp_signed("!=", parts, constant(0)), likely=False):
        inside = e.b.sub(low, e.load_field(StorageRow, row, "low"))
        granule = e.b.lshr(inside, constant(GRANULE_BYTES.bit_length() - 1))
        pair = e.b.inttoptr(e.b.add(parts, e.b.shl(granule, constant(4))), POINTER)
        bounds = {"low": e.b.load(pair, typ=I64), "high": e.b.load(e.offset(pair, 8), typ=I64)}
        above = e.b.icmp_unsigned(">=", low, bounds["low"])
        fits = e.b.and_(above, e.b.icmp_unsigned("<=", end, bounds["high"]))
        e.b.store(constant(1), e.field(Site, site, "low"))
        e.b.store(constant(0), e.field(Site, site, "high"))
        with e.when(e.b.not_(fits), likely=False):
            e.b.ret(constant(FaultKind.OUT_OF_BOUNDS))
        for name, value in bounds.items():
            e.b.store(value, e.field(Site, site, name))


def _build_refuel(module: ir.Module) -> None:
    """refuel(context, warp, place): 0 to go on, else the launch has to stop. Also called when a fault took the fuel."""
    e = start_function(module, REFUEL, I32, [POINTER, POINTER, I64])
    context, warp, place = e.function.args
    stop = e.b.load(e.b.inttoptr(e.load_field(Context, context, "stop_block"), POINTER), typ=I64)
    faulted = e.b.icmp_signed("!=", e.load_field(Context, context, "fault_kind"), constant(0))
    behind = e.b.icmp_signed(">", e.load_field(Context, context, "block_index"), stop)
    with e.when(e.b.or_(behind, faulted)):
        e.b.ret(ir.Constant(I32, 1))
    budget = e.load_field(Context, context, "budget")
    # The fuel was the smaller of FUEL and what was left of the budget, and is used up.
    left = e.b.sub(budget, e.load_field(Warp, warp, "spent"))
    left = e.b.sub(left, at_most_fuel(e, left))
    e.b.store(e.b.sub(budget, left), e.field(Warp, warp, "spent"))
    with e.when(e.b.icmp_signed("<=", left, constant(0))):
        record_fault(e, context, FaultKind.BUDGET, place=place)
        e.b.ret(ir.Constant(I32, 1))
    # The iteration that asks is one of those to come.
    e.b.store(e.b.sub(at_most_fuel(e, left), constant(1)), e.field(Warp, warp, "fuel"))
    charge_launch(e, context, warp, place)
    with e.when(e.b.icmp_signed("!=", e.load_field(Context, context, "fault_kind"), constant(0))):
        e.b.ret(ir.Constant(I32, 1))
    e.b.ret(ir.Constant(I32, 0))


def _build_spend(module: ir.Module) -> None:
    """spend(context, warp, place): one more iteration; 0 to go on, else the launch has to stop."""
    e = start_function(module, SPEND, I32, [POINTER, POINTER, I64])
    context, warp, place = e.function.args
    with e.when(spend_fuel(e, warp), likely=False):
        e.b.ret(e.intrinsic(REFUEL, I32, [context, warp, place]))
    e.b.ret(ir.Constant(I32, 0))


def spend_fuel(e: Emitter, warp: ir.Value) -> ir.Value:
    """One more iteration; whether the fuel is used up."""
    place = e.field(Warp, warp, "fuel")
    left = e.b.sub(e.b.load(place, typ=I64), constant(1))
    e.b.store(left, place)
    return e.b.icmp_signed("<", left, constant(0))


def at_most_fuel(e: Emitter, iterations: ir.Value) -> ir.Value:
    """What a warp may run before it looks at the stop flag again, of the iterations that are left to it."""
    return e.b.select(e.b.icmp_signed("<", iterations, constant(FUEL)), iterations, constant(FUEL))


def begin_charge(e: Emitter, context: ir.Value, warp: ir.Value) -> None:
    """To be emitted where a warp begins to run: what it has run before is the launch's already."""
    with _limited(e, context):
        e.b.store(_iterations(e, context, warp), e.field(Context, context, "charged"))


def charge_launch(e: Emitter, context: ir.Value, warp: ir.Value, place: ir.Value = _NONE) -> None:
    """What the warp has run since it was last charged becomes the launch's; a fault where that is beyond the budget."""
    with _limited(e, context):
        iterations = _iterations(e, context, warp)
        e.add_field(Context, context, "launch_spent", e.b.sub(iterations, e.load_field(Context, context, "charged")))
        e.b.store(iterations, e.field(Context, context, "charged"))
        spent, budget = (e.load_field(Context, context, name) for name in ("launch_spent", "launch_budget"))
        with e.when(e.b.icmp_signed(">", spent, budget), likely=False):
            record_fault(e, context, FaultKind.LAUNCH_BUDGET, place=place)


def _limited(e: Emitter, context: ir.Value) -> AbstractContextManager[None]:
    """Code for launches with a budget of their own."""
    return e.when(e.b.icmp_signed("!=", e.load_field(Context, context, "launch_budget"), constant(0)), likely=False)


def _iterations(e: Emitter, context: ir.Value, warp: ir.Value) -> ir.Value:
    """The loop iterations that a warp has run."""
    spent = e.load_field(Warp, warp, "spent")
    given = at_most_fuel(e, e.b.sub(e.load_field(Context, context, "budget"), spent))
    return e.b.sub(e.b.add(spent, given), e.load_field(Warp, warp, "fuel"))
