"""The scheduler as generated code: a worker's loop over the blocks that it holds, their warps and their barriers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.emitter import I8, I32, I64, POINTER, VOID, Callee, Emitter, constant, start_function
from triptych.gpu.lower.records import PATIENCE, Context, FaultKind, Need, Outcome, Status, Warp
from triptych.gpu.lower.scheduling.barriers import SETTLE
from triptych.gpu.lower.scheduling.services import at_most_fuel, begin_charge, charge_launch, record_fault
from triptych.gpu.lower.scheduling.turns import START_BLOCK, move_on

RUN = "triptych.run"
IDLE_TURNS = 32
"""Turns without progress of all blocks that a worker holds, until it asks whether to go on."""


def build_scheduler() -> ir.Module:
    """The module with `triptych.run` and `triptych.start_block`."""
    module = ir.Module(name="triptych.scheduler")
    _build_start_block(module)
    _build_step(module)
    _Run(module)
    return module


def _build_start_block(module: ir.Module) -> None:
    """start_block(context, index): coordinates, memory and warps of a new block."""
    e = start_function(module, START_BLOCK, VOID, [POINTER, I64])
    context, index = e.function.args
    e.start_record(Context, context, {"block_index": index, **_coordinates(e, context, index)})
    shared, local = (e.b.inttoptr(e.load_field(Context, context, name), POINTER) for name in ("shared", "local"))
    undefined = e.load_field(Context, context, "undefined_byte", I8)
    e.fill(shared, undefined, e.load_field(Context, context, "shared_size"))
    e.fill(shared, 0, e.load_field(Context, context, "cleared_bytes"))
    watched = e.b.add(e.load_field(Context, context, "shared"), e.load_field(Context, context, "watched_warps"))
    e.fill(e.b.inttoptr(watched, POINTER), 0, e.load_field(Context, context, "watched_bytes"))
    warps = e.load_field(Context, context, "warp_count")
    threads = e.b.mul(warps, constant(WARP_SIZE))
    e.fill(local, undefined, e.b.mul(threads, e.load_field(Context, context, "local_stride")))
    e.add_field(Context, context, "launch_spent", warps)
    threads = e.load_field(Context, context, "threads")
    fuel = at_most_fuel(e, e.load_field(Context, context, "budget"))
    with _each_warp(e, context) as (i, warp):
        left = e.b.sub(threads, e.b.mul(i, constant(WARP_SIZE)))
        part = e.b.sub(e.b.shl(constant(1), e.b.and_(left, constant(WARP_SIZE - 1))), constant(1))
        whole = e.b.icmp_signed(">=", left, constant(WARP_SIZE))
        e.start_record(Warp, warp, {"fuel": fuel, "mask": e.b.select(whole, constant(0xFFFF_FFFF), part)})
    e.b.ret_void()


def _coordinates(e: Emitter, context: ir.Value, index: ir.Value) -> dict[str, ir.Value]:
    """A block's coordinates by its number: blocks are numbered cluster after cluster, in the order of the launch."""
    places = {axis: e.variable(I64) for axis in "xyz"}
    size = e.load_field(Context, context, "cluster_size")
    with e.b.if_else(e.b.icmp_signed("==", size, constant(1)), likely=True) as (alone, clustered):
        with alone:
            extents = [e.load_field(Context, context, f"nctaid_{axis}") for axis in "xyz"]
            for place, value in zip(places.values(), _split(e, _ordered(e, context, index), extents), strict=True):
                e.b.store(value, place)
        with clustered:
            parts = [e.load_field(Context, context, f"cluster_{axis}") for axis in "xyz"]
            grid = [e.load_field(Context, context, f"nctaid_{axis}") for axis in "xyz"]
            clusters = [e.b.udiv(extent, part) for extent, part in zip(grid, parts, strict=True)]
            cluster = _ordered(e, context, e.b.udiv(index, size))
            first, within = _split(e, cluster, clusters), _split(e, e.b.urem(index, size), parts)
            for place, cluster, part, inner in zip(places.values(), first, parts, within, strict=True):
                e.b.store(e.b.add(e.b.mul(cluster, part), inner), place)
    return {f"ctaid_{axis}": e.get(place, I64) for axis, place in places.items()}


def _ordered(e: Emitter, context: ir.Value, cluster: ir.Value) -> ir.Value:
    """Which of the grid's clusters, or single blocks, is that of a number in the order of the launch."""
    distance = e.b.mul(cluster, e.load_field(Context, context, "cluster_step"))
    return e.b.add(e.load_field(Context, context, "first_cluster"), distance)


def _split(e: Emitter, number: ir.Value, extents: list[ir.Value]) -> list[ir.Value]:
    """The coordinates of the place with that number, x ascending first."""
    found: list[ir.Value] = []
    for extent in extents:
        found.append(e.b.urem(number, extent))
        number = e.b.udiv(number, extent)
    return found


@contextmanager
def _each_warp(e: Emitter, context: ir.Value) -> Generator[tuple[ir.Value, ir.Value]]:
    """Runs for each warp of the block; gives its number and its record."""
    warps = e.b.inttoptr(e.load_field(Context, context, "warps"), POINTER)
    with e.counted(e.load_field(Context, context, "warp_count")) as i:
        yield i, e.offset(warps, e.b.mul(i, constant(Warp.size())))


def _build_step(module: ir.Module) -> None:
    """step(context, warp): runs a warp until it waits, yields or ends; gives a `Need`."""
    e = start_function(module, "triptych.step", I64, [POINTER, POINTER])
    context, warp = e.function.args
    code = ir.FunctionType(I32, [POINTER, POINTER])
    e.b.store(e.load_field(Warp, warp, "index"), e.field(Context, context, "warp_index"))
    head, converged, masked, outcome = (e.block(n) for n in ("head", "converged", "masked", "outcome"))
    result = e.variable(I32, ir.Constant(I32, 0))
    e.b.branch(head)
    e.b.position_at_end(head)
    e.b.cbranch(e.b.icmp_signed("==", e.load_field(Warp, warp, "mode"), constant(0)), converged, masked)
    e.b.position_at_end(converged)
    function = e.b.inttoptr(e.load_field(Context, context, "converged"), POINTER)
    e.b.store(e.b.call(Callee(function, code), [context, warp]), result)
    e.b.branch(outcome)
    e.b.position_at_end(masked)
    address = e.load_field(Context, context, "masked")
    with e.when(e.b.icmp_signed("==", address, constant(0))):
        e.b.ret(constant(Need.MASKED_FORM))
    e.b.store(e.b.call(Callee(e.b.inttoptr(address, POINTER), code), [context, warp]), result)
    e.b.branch(outcome)
    e.b.position_at_end(outcome)
    value = e.get(result, I32)
    change, ended, yielded, waits = (e.block(n) for n in ("change", "ended", "yielded", "waits"))
    switch = e.b.switch(value, change)
    ends = {Outcome.DONE: ended, Outcome.STOPPED: ended, Outcome.YIELDED: yielded, Outcome.BARRIER: waits}
    for number, block in ends.items():
        switch.add_case(ir.Constant(I32, number), block)
    e.b.position_at_end(ended)
    e.b.store(constant(Status.DONE), e.field(Warp, warp, "status"))
    e.add_field(Context, context, "progress", constant(1))
    e.b.ret(constant(Need.NOTHING))
    e.b.position_at_end(yielded)
    e.b.store(constant(PATIENCE), e.field(Warp, warp, "patience"))
    e.add_field(Context, context, "spins", constant(PATIENCE))
    e.b.branch(waits)
    e.b.position_at_end(waits)
    e.b.ret(constant(Need.NOTHING))
    e.b.position_at_end(change)
    e.b.store(
        e.b.zext(e.b.icmp_signed("==", value, ir.Constant(I32, Outcome.DIVERGED)), I64), e.field(Warp, warp, "mode")
    )
    e.b.branch(head)


class _Run:
    """Emits run(context): takes blocks until none is left; gives a `Need`, and goes on where it was when called again.

    A block whose warps all wait in loops or at barriers steps aside for the others that this worker holds. After a turn
    of these in which none made progress the worker takes as many again, until it holds all that it may.
    """

    def __init__(self, module: ir.Module) -> None:
        self.e = e = start_function(module, RUN, I64, [POINTER])
        (self.context,) = e.function.args
        self.visit, self.take, self.rounds, self.finish, self.turn, self.leave = (
            e.block(n) for n in ("visit", "take", "round", "finish", "turn", "leave")
        )
        e.b.branch(self.visit)
        self._emit_visit()
        self._emit_take()
        self._emit_rounds()
        self._emit_finish()
        self._emit_turn()
        e.b.position_at_end(self.leave)
        self._return(Need.NOTHING)

    def get(self, name: str) -> ir.Value:
        return self.e.load_field(Context, self.context, name)

    def put(self, name: str, value: ir.Value) -> None:
        self.e.b.store(value, self.e.field(Context, self.context, name))

    def less(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.e.b.icmp_signed("<", left, right)

    def _return(self, need: int | ir.Value) -> None:
        if llvm.get_host_cpu_features().get("avx"):
            # The upper halves of vector registers slow down the caller's older code while they are set.
            self.e.intrinsic("llvm.x86.avx.vzeroupper", VOID, [])
        self.e.b.ret(constant(need) if isinstance(need, int) else need)

    def _where(self, field: str, least: int) -> AbstractContextManager[None]:
        """Code that runs where a field of the context is at least so much, which it seldom is."""
        return self.e.when(self.e.b.icmp_signed(">=", self.get(field), constant(least)), likely=False)

    def _ask_clusters(self, hook: str, *arguments: ir.Value) -> ir.Value:
        """Calls the function of `clusters.HOOKS` by its address in the context."""
        kind = ir.FunctionType(I64, [POINTER, *(a.type for a in arguments)])
        function = self.e.b.inttoptr(self.get(hook), POINTER)
        return self.e.b.call(Callee(function, kind), [self.context, *arguments])

    def _says(self, hook: str) -> ir.Value:
        return self.e.b.icmp_signed("!=", self._ask_clusters(hook), constant(0))

    def _stop_block(self) -> ir.Value:
        return self.e.b.load(self.e.b.inttoptr(self.get("stop_block"), POINTER), typ=I64)

    def _may_run(self, index: ir.Value) -> ir.Value:
        """Whether there is a block of that number, and nothing stops it."""
        before_stop = self.e.b.icmp_signed("<=", index, self._stop_block())
        return self.e.b.and_(self.less(index, self.get("total_blocks")), before_stop)

    def _some_left(self) -> ir.Value:
        return self._may_run(self.e.b.load(self.e.b.inttoptr(self.get("next_block"), POINTER), typ=I64))

    def _emit_visit(self) -> None:
        """Of the slot at the cursor: its block runs on, or a new one starts in it, or the next slot's turn comes."""
        e = self.e
        free, room, full, none = (e.block(n) for n in ("free", "room", "full", "none"))
        e.b.position_at_end(self.visit)
        e.b.cbranch(self.less(self.get("block_index"), constant(0)), free, self.rounds)
        e.b.position_at_end(free)
        wants = e.b.and_(self.less(self.get("held"), self.get("wanted")), self._some_left())
        e.b.cbranch(wants, room, full)
        e.b.position_at_end(room)
        with self._where("cluster_size", 2):
            e.b.cbranch(self._says("room_for_cluster"), self.take, self.turn)
        e.b.branch(self.take)
        e.b.position_at_end(full)
        e.b.cbranch(e.b.icmp_signed("==", self.get("held"), constant(0)), none, self.turn)
        e.b.position_at_end(none)
        e.b.branch(self.leave)

    def _emit_take(self) -> None:
        """Takes the next block, or all of the next cluster, in ascending order of their numbers.

        `stop_block` relies on that order: a fault lets all blocks of lower numbers end, which have begun by then.
        """
        e = self.e
        begin = e.block("begin")
        e.b.position_at_end(self.take)
        next_block = e.b.inttoptr(self.get("next_block"), POINTER)
        size = self.get("cluster_size")
        index = e.b.atomic_rmw("add", next_block, size, "monotonic")
        e.b.cbranch(self._may_run(index), begin, self.visit)  # none is left where another worker took the last
        e.b.position_at_end(begin)
        with self._where("cluster_size", 2):
            self._ask_clusters("start_cluster", index)
            e.b.branch(self.rounds)
        e.intrinsic(START_BLOCK, VOID, [self.context, index])
        self.put("held", e.b.add(self.get("held"), constant(1)))
        e.b.branch(self.rounds)

    def _emit_rounds(self) -> None:
        """Each warp that can runs once; then barriers complete, until nobody can do more here."""
        e = self.e
        go, settle, look = e.block("go"), e.block("settle"), e.block("look")
        e.b.position_at_end(self.rounds)
        e.b.cbranch(self._is_stopped(), self.finish, go)
        e.b.position_at_end(go)
        waiting, ready = e.variable(I64, constant(0)), e.variable(I64, constant(0))
        e.b.store(constant(0), waiting)
        e.b.store(constant(0), ready)
        with _each_warp(e, self.context) as (_, warp):
            place = e.field(Warp, warp, "status")
            with e.when(e.b.icmp_signed("==", e.b.load(place, typ=I64), constant(Status.READY))):
                begin_charge(e, self.context, warp)
                need = e.intrinsic("triptych.step", I64, [self.context, warp])
                charge_launch(e, self.context, warp)
                with e.when(e.b.icmp_signed("!=", need, constant(Need.NOTHING)), likely=False):
                    self._return(need)
            self._count(e.b.load(place, typ=I64), waiting, ready)
        any_waiting = e.b.icmp_signed(">", e.get(waiting, I64), constant(0))
        any_ready = e.b.icmp_signed(">", e.get(ready, I64), constant(0))
        stopped = self._is_stopped()
        e.b.cbranch(e.b.or_(stopped, e.b.not_(e.b.or_(any_waiting, any_ready))), self.finish, settle)
        e.b.position_at_end(settle)
        with e.when(any_waiting):
            completed = e.intrinsic(SETTLE, I64, [self.context])
            with e.when(e.b.icmp_signed("!=", completed, constant(0))):
                e.b.branch(self.rounds)
            with self._where("settle_cluster", 1), e.when(self._says("settle_cluster")):
                e.b.branch(self.rounds)
        e.b.cbranch(any_ready, self.turn, look)
        e.b.position_at_end(look)  # warps that waited may have been released since by those behind them
        with _each_warp(e, self.context) as (_, warp):
            self._count(e.load_field(Warp, warp, "status"), waiting, ready)
        with e.when(e.b.icmp_signed(">", e.get(ready, I64), constant(0))):
            e.b.branch(self.rounds)
        with self._where("some_ready", 1), e.when(self._says("some_ready")):
            e.b.branch(self.turn)  # of another block of the cluster, which may come to what this one waits for
        record_fault(e, self.context, FaultKind.DEADLOCK)
        e.b.branch(self.finish)

    def _count(self, status: ir.Value, waiting: ir.Value, ready: ir.Value) -> None:
        for kind, total in ((Status.WAITING, waiting), (Status.READY, ready)):
            is_it = self.e.b.zext(self.e.b.icmp_signed("==", status, constant(kind)), I64)
            self.e.b.store(self.e.b.add(self.e.get(total, I64), is_it), total)

    def _is_stopped(self) -> ir.Value:
        faulted = self.e.b.icmp_signed("!=", self.get("fault_kind"), constant(0))
        behind = self.e.b.icmp_signed(">", self.get("block_index"), self._stop_block())
        return self.e.b.or_(faulted, behind)

    def _emit_finish(self) -> None:
        e = self.e
        e.b.position_at_end(self.finish)
        for name, amount in (("done_blocks", 1), ("progress", 1), ("held", -1)):
            e.add_field(Context, self.context, name, constant(amount))
        self.put("block_index", constant(-1))
        faulted = e.b.icmp_signed("!=", self.get("fault_kind"), constant(0))
        e.b.cbranch(faulted, self.leave, self.visit)

    def _emit_turn(self) -> None:
        """The next slot's turn."""
        e = self.e
        e.b.position_at_end(self.turn)
        following = e.b.add(self.get("cursor"), constant(1))
        wraps = move_on(e, self.context, following, last=self.get("slot_count"), back=constant(0))
        ends = e.block("turn_ends")
        e.b.cbranch(wraps, ends, self.visit)
        e.b.position_at_end(ends)
        idle = e.b.icmp_signed("==", self.get("progress"), self.get("turn_progress"))
        self.put("turn_progress", self.get("progress"))
        with e.when(e.b.not_(idle)):
            self.put("idle_turns", constant(0))
            e.b.branch(self.visit)
        self._emit_idle_turn()

    def _emit_idle_turn(self) -> None:
        e = self.e
        wanted, limit = self.get("wanted"), self.get("slot_limit")
        may_grow = e.b.and_(self.less(wanted, limit), self._some_left())
        with e.when(may_grow):
            twice = e.b.shl(wanted, constant(1))
            more = e.b.select(self.less(twice, limit), twice, limit)
            self.put("wanted", more)
            with e.when(self.less(self.get("slot_count"), more)):
                self._return(Need.SLOTS)
            e.b.branch(self.visit)
        turns = e.b.add(self.get("idle_turns"), constant(1))
        self.put("idle_turns", turns)
        with e.when(e.b.icmp_signed(">=", turns, constant(IDLE_TURNS))):
            self.put("idle_turns", constant(0))
            self._return(Need.PATIENCE)
        e.b.branch(self.visit)
