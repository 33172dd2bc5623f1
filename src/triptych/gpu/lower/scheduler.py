"""The scheduler as generated code: a worker's loop over blocks, warps and barriers; faults; the search of storages."""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.gpu.hardware import POISON_BYTE, WARP_SIZE
from triptych.gpu.lower.emitter import I8, I32, I64, POINTER, VOID, Emitter
from triptych.gpu.lower.records import FUEL, NO_STOP, Context, FaultKind, Need, Outcome, Record, Site, StorageRow, Warp

_READY, _WAITING, _DONE = 0, 1, 2


def _constant(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


def build_scheduler() -> ir.Module:
    """The module with `triptych.run`, `triptych.fault`, `triptych.resolve` and `triptych.refuel`."""
    module = ir.Module(name="triptych.scheduler")
    _build_fault(module)
    _build_resolve(module)
    _build_refuel(module)
    _build_start_block(module)
    _build_step(module)
    _build_run(module)
    return module


def _function(module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]) -> Emitter:
    return Emitter(ir.Function(module, ir.FunctionType(result, arguments), name))


def _build_fault(module: ir.Module) -> None:
    """fault(context, site, kind, lane, address, size): keeps a worker's first, and stops the blocks behind this one."""
    e = _function(module, "triptych.fault", VOID, [POINTER, POINTER, I64, I64, I64, I64])
    context, site, kind, lane, address, size = e.function.args
    none = e.b.icmp_signed("==", e.load_field(Context, context, "fault_kind"), _constant(0))
    with e.when(none):
        block = e.load_field(Context, context, "block_index")
        values = {
            "fault_kind": kind, "fault_site": e.b.ptrtoint(site, I64), "fault_address": address, "fault_lane": lane,
            "fault_size": size, "fault_warp": e.load_field(Context, context, "warp_index"), "fault_block": block,
        }  # fmt: skip
        for name, value in values.items():
            e.b.store(value, e.field(Context, context, name))
        _close_memory(e, context)
        stop = e.b.inttoptr(e.load_field(Context, context, "stop_block"), POINTER)
        e.b.atomic_rmw("min", stop, e.b.sub(block, _constant(1)), "monotonic")
    warps = e.b.inttoptr(e.load_field(Context, context, "warps"), POINTER)
    index = e.load_field(Context, context, "warp_index")
    warp = e.offset(warps, e.b.mul(index, _constant(Warp.size())))
    e.b.store(_constant(0), e.field(Warp, warp, "fuel"))
    e.b.ret_void()


def _close_memory(e: Emitter, context: ir.Value) -> None:
    """No later access of this worker finds memory: what runs on until the next look at the fuel changes nothing."""
    for name in ("storage_count", "shared_size", "local_size"):
        e.b.store(_constant(0), e.field(Context, context, name))
    sites = e.b.inttoptr(e.load_field(Context, context, "sites"), POINTER)
    with e.counted(e.load_field(Context, context, "site_count")) as i:
        site = e.offset(sites, e.b.mul(i, _constant(Site.size())))
        e.b.store(_constant(1), e.field(Site, site, "low"))
        e.b.store(_constant(0), e.field(Site, site, "high"))


def _build_resolve(module: ir.Module) -> None:
    """resolve(context, site, low, size, write): the storage that holds the bytes becomes the site's; else the fault."""
    e = _function(module, "triptych.resolve", I64, [POINTER, POINTER, I64, I64, I64])
    context, site, low, size, write = e.function.args
    rows = e.b.inttoptr(e.load_field(Context, context, "storages"), POINTER)
    left = e.variable(I64, _constant(0))
    right = e.variable(I64, e.load_field(Context, context, "storage_count"))
    head, body, found = e.block("head"), e.block("body"), e.block("found")
    e.b.branch(head)
    e.b.position_at_end(head)
    span = e.b.sub(e.get(right, I64), e.get(left, I64))
    e.b.cbranch(e.b.icmp_signed(">", span, _constant(0)), body, found)
    e.b.position_at_end(body)
    middle = e.b.add(e.get(left, I64), e.b.ashr(span, _constant(1)))
    row = e.offset(rows, e.b.mul(middle, _constant(StorageRow.size())))
    above = e.b.icmp_unsigned("<=", e.load_field(StorageRow, row, "low"), low)
    e.b.store(e.b.select(above, e.b.add(middle, _constant(1)), e.get(left, I64)), left)
    e.b.store(e.b.select(above, e.get(right, I64), middle), right)
    e.b.branch(head)
    e.b.position_at_end(found)
    index = e.b.sub(e.get(left, I64), _constant(1))
    with e.when(e.b.icmp_signed("<", index, _constant(0))):
        e.b.ret(_constant(FaultKind.OUT_OF_BOUNDS))
    row = e.offset(rows, e.b.mul(index, _constant(StorageRow.size())))
    end = e.b.add(low, size)
    high = e.load_field(StorageRow, row, "high")
    inside = e.b.and_(e.b.icmp_unsigned("<=", end, high), e.b.icmp_unsigned("<=", low, end))
    with e.when(e.b.not_(inside)):
        e.b.ret(_constant(FaultKind.OUT_OF_BOUNDS))
    is_write = e.b.icmp_signed("!=", write, _constant(0))
    locked = e.b.icmp_signed("==", e.load_field(StorageRow, row, "writable"), _constant(0))
    with e.when(e.b.and_(is_write, locked)):
        e.b.ret(_constant(FaultKind.READ_ONLY))
    for name in ("low", "high", "delta"):
        e.b.store(e.load_field(StorageRow, row, name), e.field(Site, site, name))
    maps = [e.load_field(StorageRow, row, name) for name in ("write_map", "read_map")]
    e.b.store(e.b.select(is_write, *maps), e.field(Site, site, "touched"))
    e.b.ret(_constant(0))


def _build_refuel(module: ir.Module) -> None:
    """refuel(context, warp, line): 0 to go on, else the launch has to stop. Also called when a fault took the fuel."""
    e = _function(module, "triptych.refuel", I32, [POINTER, POINTER, I64])
    context, warp, line = e.function.args
    stop = e.b.load(e.b.inttoptr(e.load_field(Context, context, "stop_block"), POINTER), typ=I64)
    faulted = e.b.icmp_signed("!=", e.load_field(Context, context, "fault_kind"), _constant(0))
    behind = e.b.icmp_signed(">", e.load_field(Context, context, "block_index"), stop)
    with e.when(e.b.or_(behind, faulted)):
        e.b.ret(ir.Constant(I32, 1))
    budget = e.load_field(Context, context, "budget")
    # The fuel was the smaller of FUEL and what was left of the budget, and is used up.
    left = e.b.sub(budget, e.load_field(Warp, warp, "spent"))
    left = e.b.sub(left, _at_most_fuel(e, left))
    e.b.store(e.b.sub(budget, left), e.field(Warp, warp, "spent"))
    with e.when(e.b.icmp_signed("<=", left, _constant(0))):
        null = ir.Constant(POINTER, None)
        arguments = [context, null, _constant(FaultKind.BUDGET), _constant(0), line, _constant(0)]
        e.intrinsic("triptych.fault", VOID, arguments)
        e.b.ret(ir.Constant(I32, 1))
    # The iteration that asks is one of those to come.
    e.b.store(e.b.sub(_at_most_fuel(e, left), _constant(1)), e.field(Warp, warp, "fuel"))
    e.b.ret(ir.Constant(I32, 0))


def _at_most_fuel(e: Emitter, iterations: ir.Value) -> ir.Value:
    return e.b.select(e.b.icmp_signed("<", iterations, _constant(FUEL)), iterations, _constant(FUEL))


def _build_start_block(module: ir.Module) -> None:
    """start_block(context, index): coordinates, shared memory and warps of a new block."""
    e = _function(module, "triptych.start_block", VOID, [POINTER, I64])
    context, index = e.function.args
    e.b.store(index, e.field(Context, context, "block_index"))
    rest = index
    for axis in "xyz":
        extent = e.load_field(Context, context, f"nctaid_{axis}")
        e.b.store(e.b.urem(rest, extent), e.field(Context, context, f"ctaid_{axis}"))
        rest = e.b.udiv(rest, extent)
    shared = e.b.inttoptr(e.load_field(Context, context, "shared"), POINTER)
    size = e.load_field(Context, context, "shared_size")
    e.intrinsic("llvm.memset.p0.i64", VOID, [shared, ir.Constant(I8, POISON_BYTE), size, ir.Constant(ir.IntType(1), 0)])
    threads = e.load_field(Context, context, "threads")
    warps = e.b.inttoptr(e.load_field(Context, context, "warps"), POINTER)
    fuel = _at_most_fuel(e, e.load_field(Context, context, "budget"))
    with e.counted(e.load_field(Context, context, "warp_count")) as i:
        warp = e.offset(warps, e.b.mul(i, _constant(Warp.size())))
        e.b.store(fuel, e.field(Warp, warp, "fuel"))
        for name in ("status", "resume", "spent", "mode"):
            e.b.store(_constant(0), e.field(Warp, warp, name))
        left = e.b.sub(threads, e.b.mul(i, _constant(WARP_SIZE)))
        part = e.b.sub(e.b.shl(_constant(1), e.b.and_(left, _constant(WARP_SIZE - 1))), _constant(1))
        whole = e.b.icmp_signed(">=", left, _constant(WARP_SIZE))
        e.b.store(e.b.select(whole, _constant(0xFFFF_FFFF), part), e.field(Warp, warp, "mask"))
    e.b.ret_void()


def _build_step(module: ir.Module) -> None:
    """step(context, warp): runs a warp until it waits or ends; gives a `Need`."""
    e = _function(module, "triptych.step", I64, [POINTER, POINTER])
    context, warp = e.function.args
    code = ir.FunctionType(I32, [POINTER, POINTER])
    e.b.store(e.load_field(Warp, warp, "index"), e.field(Context, context, "warp_index"))
    head, converged, masked, outcome = (e.block(n) for n in ("head", "converged", "masked", "outcome"))
    result = e.variable(I32, ir.Constant(I32, 0))
    e.b.branch(head)
    e.b.position_at_end(head)
    e.b.cbranch(e.b.icmp_signed("==", e.load_field(Warp, warp, "mode"), _constant(0)), converged, masked)
    e.b.position_at_end(converged)
    function = e.b.inttoptr(e.load_field(Context, context, "converged"), POINTER)
    e.b.store(e.b.call(_Callee(function, code), [context, warp]), result)
    e.b.branch(outcome)
    e.b.position_at_end(masked)
    address = e.load_field(Context, context, "masked")
    with e.when(e.b.icmp_signed("==", address, _constant(0))):
        e.b.ret(_constant(Need.MASKED_FORM))
    e.b.store(e.b.call(_Callee(e.b.inttoptr(address, POINTER), code), [context, warp]), result)
    e.b.branch(outcome)
    e.b.position_at_end(outcome)
    value = e.get(result, I32)
    change = e.block("change")
    ends = {Outcome.DONE: _DONE, Outcome.BARRIER: _WAITING, Outcome.STOPPED: _DONE}
    switch = e.b.switch(value, change)
    for number, status in ends.items():
        block = e.block("ended")
        switch.add_case(ir.Constant(I32, number), block)
        e.b.position_at_end(block)
        e.b.store(_constant(status), e.field(Warp, warp, "status"))
        e.b.ret(_constant(Need.NOTHING))
    e.b.position_at_end(change)
    e.b.store(
        e.b.zext(e.b.icmp_signed("==", value, ir.Constant(I32, Outcome.DIVERGED)), I64), e.field(Warp, warp, "mode")
    )
    e.b.branch(head)


class _Callee:
    """A pointer that llvmlite takes for a function of a known type."""

    def __init__(self, pointer: ir.Value, kind: ir.FunctionType) -> None:
        self.pointer = pointer
        self.function_type = kind

    def get_reference(self) -> str:
        """How the text of a call names it."""
        return self.pointer.get_reference()


def _build_run(module: ir.Module) -> None:
    """run(context): takes blocks until none is left; gives a `Need`, and goes on where it was when called again."""
    e = _function(module, "triptych.run", I64, [POINTER])
    (context,) = e.function.args
    next_block = e.b.inttoptr(e.load_field(Context, context, "next_block"), POINTER)
    stop_place = e.b.inttoptr(e.load_field(Context, context, "stop_block"), POINTER)
    warps = e.b.inttoptr(e.load_field(Context, context, "warps"), POINTER)
    count = e.load_field(Context, context, "warp_count")
    take, begin, rounds, leave = (e.block(n) for n in ("take", "begin", "round", "leave"))
    resumed = e.b.icmp_signed(">=", e.load_field(Context, context, "block_index"), _constant(0))
    e.b.cbranch(resumed, rounds, take)
    e.b.position_at_end(take)
    index = e.b.atomic_rmw("add", next_block, _constant(1), "monotonic")
    stop = e.b.load(stop_place, typ=I64)
    more = e.b.and_(
        e.b.icmp_signed("<", index, e.load_field(Context, context, "total_blocks")), e.b.icmp_signed("<=", index, stop)
    )
    e.b.cbranch(more, begin, leave)
    e.b.position_at_end(begin)
    e.intrinsic("triptych.start_block", VOID, [context, index])
    e.b.branch(rounds)

    e.b.position_at_end(rounds)
    waiting = e.variable(I64, _constant(0))
    e.b.store(_constant(0), waiting)
    with e.counted(count) as i:
        warp = e.offset(warps, e.b.mul(i, _constant(Warp.size())))
        ready = e.b.icmp_signed("==", e.load_field(Warp, warp, "status"), _constant(_READY))
        with e.when(ready):
            need = e.intrinsic("triptych.step", I64, [context, warp])
            with e.when(e.b.icmp_signed("!=", need, _constant(0)), likely=False):
                _leave_clean(e)
                e.b.ret(need)
        is_waiting = e.b.icmp_signed("==", e.load_field(Warp, warp, "status"), _constant(_WAITING))
        e.b.store(e.b.add(e.get(waiting, I64), e.b.zext(is_waiting, I64)), waiting)
    faulted = e.b.icmp_signed("!=", e.load_field(Context, context, "fault_kind"), _constant(0))
    stopped = e.b.icmp_signed(">", e.load_field(Context, context, "block_index"), e.b.load(stop_place, typ=I64))
    release, finish = e.block("release"), e.block("finish")
    any_waiting = e.b.icmp_signed(">", e.get(waiting, I64), _constant(0))
    e.b.cbranch(e.b.and_(any_waiting, e.b.not_(e.b.or_(faulted, stopped))), release, finish)
    e.b.position_at_end(release)
    e.add_field(Context, context, "barriers", e.get(waiting, I64))
    with e.counted(count) as i:
        warp = e.offset(warps, e.b.mul(i, _constant(Warp.size())))
        status = e.load_field(Warp, warp, "status")
        released = e.b.select(e.b.icmp_signed("==", status, _constant(_WAITING)), _constant(_READY), status)
        e.b.store(released, e.field(Warp, warp, "status"))
    e.b.branch(rounds)
    e.b.position_at_end(finish)
    e.add_field(Context, context, "done_blocks", _constant(1))
    e.b.store(_constant(-1), e.field(Context, context, "block_index"))
    e.b.cbranch(faulted, leave, take)
    e.b.position_at_end(leave)
    _leave_clean(e)
    e.b.ret(_constant(Need.NOTHING))


def _leave_clean(e: Emitter) -> None:
    """Clears the upper halves of the vector registers, which slow down the caller's older code while they are set."""
    if llvm.get_host_cpu_features().get("avx"):
        e.intrinsic("llvm.x86.avx.vzeroupper", VOID, [])


RECORDS: tuple[type[Record], ...] = (Context, Warp, Site, StorageRow)
"""The structures that generated code depends on; their layout is part of the cache's key."""

STOP_AT_ONCE = -1
"""A `stop_block` that ends every block."""

__all__ = ["NO_STOP", "RECORDS", "STOP_AT_ONCE", "build_scheduler"]
