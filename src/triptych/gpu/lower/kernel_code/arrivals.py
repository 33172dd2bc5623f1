"""Arriving at a barrier of the block or of its cluster: what both forms of a kernel do at `bar` and `barrier`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.hardware import BARRIERS, WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Effect
from triptych.gpu.lower.kernel_code.body import KernelForm
from triptych.gpu.lower.primitives.emitter import I32, I64, number, vector
from triptych.gpu.lower.primitives.machine import Value
from triptych.gpu.lower.records import BARRIER_SHIFT, WAITING, FaultKind, Outcome, Warp
from triptych.gpu.lower.scheduling.barriers import ANY, ARRIVE, CLUSTER_BARRIER, COUNT, EVERY
from triptych.gpu.lower.scheduling.services import record_fault
from triptych.gpu.syntax.ast import Register


@dataclass(frozen=True, slots=True)
class Arrival:
    """A barrier's operands where it is executed."""

    lanes: ir.Value
    """Those that arrive, an i32."""
    number: Value
    threads: Value | None
    holds: ir.Value | None
    """The lanes in which a reduction's predicate holds, an i32."""
    following: int
    """The block behind it."""
    result: int
    """What a lane that waits writes into `Warp.results`."""
    place: int
    aligned: bool


@dataclass(frozen=True, slots=True)
class ClusterWait:
    """A wait at the cluster's barrier where it is executed."""

    lanes: ir.Value
    """Those that have to wait, an i32: not all threads of the cluster have arrived since they did."""
    marks: ir.Value
    """Each lane's next block: those that have to wait do so before it."""


class ArrivingForm(KernelForm):
    """A form of a kernel with barriers of the block."""

    def read_arrival(self, index: int, following: int) -> Arrival:
        """The barrier at the end of a block."""
        return self._read_arrival(self.analysis.bound[index][-1], following)

    def _read_arrival(self, instruction: BoundInstruction, following: int) -> Arrival:
        barrier = instruction.barrier
        assert barrier is not None
        guard = self.guard_of(instruction)
        lanes = self.group if guard is None else self.lanes_where(guard)
        which = self.m.whole(self.operands.read(barrier.number, instruction))
        threads = None if barrier.threads is None else self.m.whole(self.operands.read(barrier.threads, instruction))
        holds = None
        if barrier.predicate is not None:
            holds = self.b.and_(self.lanes_where(self.operands.read(barrier.predicate, instruction)), lanes)
        result, place = self._place_of_result(instruction, following), instruction.instruction.place
        return Arrival(lanes, which, threads, holds, following, result, place, barrier.aligned)

    def marks_of(self, arrival: Arrival) -> ir.Value:
        """Each lane's next block: those that arrive wait before it."""
        low = self.b.and_(self.m.spread(arrival.number), number(vector(I32), BARRIERS - 1))
        behind = number(vector(I32), arrival.following)
        waiting = self.b.or_(self.b.shl(low, number(vector(I32), BARRIER_SHIFT)), number(vector(I32), WAITING))
        return self.b.select(self.e.from_bits(arrival.lanes), self.b.or_(waiting, behind), behind)

    def _place_of_result(self, instruction: BoundInstruction, following: int) -> int:
        if instruction.effect is not Effect.BLOCK_REDUCTION:
            return -1
        operand = instruction.destinations[0].operand
        if not isinstance(operand, Register) or operand.name not in self.analysis.liveness.live_in(following):
            return -1
        kind = {"and": EVERY, "or": ANY}.get(instruction.form.get("operation"), COUNT)
        return 4 * self.analysis.slots[operand.name] + kind

    def set_results(self, arrival: Arrival, lanes: ir.Value) -> None:
        """Where the results of a reduction go in these lanes, a <32 x i1>."""
        place = self.e.field(Warp, self.warp, "results_0")
        before = self.b.load(place, align=8, typ=vector(I32))
        self.b.store(self.b.select(lanes, number(vector(I32), arrival.result), before), place, align=8)

    def arrive_in_passing(self, instruction: BoundInstruction) -> None:
        """See `KernelForm`."""
        self.arrive(self._read_arrival(instruction, 0), self.alive_lanes())

    def arrive_at_cluster(self, instruction: BoundInstruction) -> None:
        """See `KernelForm`: each warp says for itself who has arrived; the scheduler looks at all of the cluster."""
        lanes, owing = self._cluster_lanes(instruction), self.e.load_field(Warp, self.warp, "cluster_owing", I32)
        self._check_cluster(FaultKind.CLUSTER_ARRIVAL, self.b.and_(lanes, owing), instruction)
        self._set_cluster("cluster_owing", self.b.or_(owing, lanes))
        arrived = self.e.load_field(Warp, self.warp, "cluster_arrived", I32)
        self._set_cluster("cluster_arrived", self.b.or_(arrived, lanes))

    def read_cluster_wait(self, instruction: BoundInstruction, following: int) -> ClusterWait:
        """The wait at the end of a block."""
        lanes, owing = self._cluster_lanes(instruction), self.e.load_field(Warp, self.warp, "cluster_owing", I32)
        self._check_cluster(FaultKind.CLUSTER_WAIT, self.b.and_(lanes, self.b.not_(owing)), instruction)
        self._set_cluster("cluster_owing", self.b.and_(owing, self.b.not_(lanes)))
        waiting = self.b.and_(lanes, self.e.load_field(Warp, self.warp, "cluster_arrived", I32))
        mark = WAITING | CLUSTER_BARRIER << BARRIER_SHIFT | following
        kind = vector(I32)
        return ClusterWait(
            waiting, self.b.select(self.e.from_bits(waiting), number(kind, mark), number(kind, following))
        )

    def _cluster_lanes(self, instruction: BoundInstruction) -> ir.Value:
        guard = self.guard_of(instruction)
        return self.group if guard is None else self.lanes_where(guard)

    def _set_cluster(self, name: str, lanes: ir.Value) -> None:
        self.b.store(self.b.zext(lanes, I64), self.e.field(Warp, self.warp, name))

    def _check_cluster(self, kind: FaultKind, wrong: ir.Value, instruction: BoundInstruction) -> None:
        """Arrivals and waits of a thread must alternate."""
        with self.e.when(self.b.icmp_unsigned("!=", wrong, ir.Constant(I32, 0)), likely=False):
            lane = self.b.zext(self.e.count_trailing_zeros(wrong), I64)
            record_fault(self.e, self.context, kind, lane=lane, place=ir.Constant(I64, instruction.instruction.place))
            self.leave(Outcome.STOPPED)

    @abstractmethod
    def alive_lanes(self) -> ir.Value:
        """The live lanes, an i32."""

    def arrive(self, arrival: Arrival, alive: ir.Value) -> None:
        """Counts the lanes at their barriers, each distinct one once; they are marked as waiting before."""
        if arrival.number.uniform and (arrival.threads is None or arrival.threads.uniform):
            with self.e.when(self.b.icmp_unsigned("!=", arrival.lanes, ir.Constant(I32, 0))):
                self._call(arrival, alive, arrival.lanes, [self._whole(v) for v in (arrival.number, arrival.threads)])
            return
        left = self.e.variable(I32, arrival.lanes)
        head, body, done = self.e.block("arrivals"), self.e.block("arrive"), self.e.block("arrived")
        self.b.branch(head)
        self.b.position_at_end(head)
        rest = self.e.get(left, I32)
        self.b.cbranch(self.b.icmp_unsigned("!=", rest, ir.Constant(I32, 0)), body, done)
        self.b.position_at_end(body)
        first, same = self.e.count_trailing_zeros(rest), rest
        chosen: list[ir.Value] = []
        for value in (arrival.number, arrival.threads):
            if value is None or value.uniform:
                chosen.append(self._whole(value))
                continue
            one = self.b.extract_element(value.ir, first)
            same = self.b.and_(same, self.e.bits(self.b.icmp_unsigned("==", value.ir, self.e.splat(one))))
            chosen.append(self.b.zext(one, I64))
        self.b.store(self.b.and_(rest, self.b.not_(same)), left)
        self._call(arrival, alive, same, chosen)
        self.b.branch(head)
        self.b.position_at_end(done)

    def _whole(self, value: Value | None) -> ir.Value:
        return ir.Constant(I64, -1) if value is None else self.b.zext(value.ir, I64)

    def _call(self, arrival: Arrival, alive: ir.Value, lanes: ir.Value, operands: list[ir.Value]) -> None:
        count = amount = self.population(lanes)
        if arrival.aligned:
            whole = self.b.icmp_unsigned("==", lanes, alive)
            amount = self.b.select(whole, ir.Constant(I64, WARP_SIZE), count)
        holds: ir.Value = ir.Constant(I64, -1)
        if arrival.holds is not None:
            holds = self.population(self.b.and_(arrival.holds, lanes))
        at = ir.Constant(I64, arrival.place)
        stop = self.e.intrinsic(ARRIVE, I32, [self.context, self.warp, *operands, amount, count, holds, at])
        with self.e.when(self.b.icmp_unsigned("!=", stop, ir.Constant(I32, 0)), likely=False):
            self.leave(Outcome.STOPPED)
