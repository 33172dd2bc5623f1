"""The instructions of a block as code: what the converged and the masked form of a kernel share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.calls import HOST_FUNCTIONS
from triptych.gpu.isa.effects import Carrier
from triptych.gpu.isa.types import TYPES, U16, U32, U64, ScalarType
from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Callee, start_function, vector
from triptych.gpu.lower.primitives.machine import LlvmMachine, Value, element_type
from triptych.gpu.lower.primitives.outlined import COUNT
from triptych.gpu.lower.primitives.registers import Operands
from triptych.gpu.lower.records import Context, FaultKind, Outcome, Warp
from triptych.gpu.lower.scheduling.services import REFUEL, SPEND, record_fault, spend_fuel
from triptych.gpu.lower.watching.machine import WatchingMachine
from triptych.gpu.syntax.ast import Register, Sink, Vector

_BITS = {16: U16, 32: U32, 64: U64}

FRAME_ALIGNMENT = 32
"""Bytes; every register in a warp's frame begins at a multiple of them."""
LONG = 500
"""PTX instructions of a kernel beyond which its blocks are cut into stretches."""
STRETCH = 8
"""PTX instructions of a stretch."""


class KernelForm(ABC):
    """One form of a kernel as a function `(context, warp) -> Outcome`; a subclass says where registers live."""

    def __init__(self, analysis: KernelAnalysis, module: ir.Module, name: str, *, is_brief: bool = False) -> None:
        """Starts the function; for `is_brief` see `Emitter`."""
        self.analysis = analysis
        self.e = start_function(module, name, I32, [POINTER, POINTER], is_brief=is_brief)
        self.b = self.e.b
        self.context, self.warp = self.e.function.args
        machine = WatchingMachine if analysis.is_watched else LlvmMachine
        self.m = machine(self.e, self.context, self.warp)
        self.m.parameter_bytes = analysis.layout.parameter_bytes
        self.m.stack_start = analysis.layout.local_bytes
        self.operands = Operands(analysis, self.m, self.read_register)
        self.values: dict[str, Value] = {}
        self.written: set[str] = set()
        self.layout = analysis.counts
        self.counts = self.b.inttoptr(self.e.load_field(Context, self.context, "counts"), POINTER)
        self.frame = self.b.inttoptr(self.e.load_field(Warp, self.warp, "frame"), POINTER)
        self.group: ir.Value = ir.Constant(I32, -1)
        """The lanes that run the block, an i32."""
        self.is_whole = False
        """Whether these are known to be all 32."""
        self.is_long = sum(map(len, analysis.bound)) > LONG

    # Where registers live ---------------------------------------------------------------------------------------

    @abstractmethod
    def read_home(self, name: str) -> Value:
        """The value of a register that an earlier block wrote."""

    def read_register(self, name: str) -> Value:
        """A register's present value; undefined registers read as zero."""
        known = self.values.get(name)
        if known is None:
            if name in self.analysis.slots:
                known = replace(self.read_home(name), loose=name in self.analysis.loose)
            else:
                known = self.m.constant(self.operands.declared(name), 0)
            self.values[name] = known
        return known

    def frame_place(self, name: str) -> ir.Value:
        """A register's place in the warp's frame."""
        return self.e.offset(self.frame, self.analysis.slots[name])

    def load_frame(self, name: str) -> ir.Value:
        """A register's lanes from the frame."""
        kind = vector(self.lane_type(name))
        return self.from_home(name, self.b.load(self.frame_place(name), align=FRAME_ALIGNMENT, typ=kind))

    def store_frame(self, name: str, lanes: ir.Value) -> None:
        """A register's lanes into the frame."""
        self.b.store(self.to_home(name, lanes), self.frame_place(name), align=FRAME_ALIGNMENT)

    def lane_type(self, name: str) -> ir.Type:
        """One lane of a register where it lives across blocks: a predicate is 0 or -1."""
        t = self.operands.declared(name)
        return I32 if t.kind == "predicate" else element_type(t)

    def to_home(self, name: str, lanes: ir.Value) -> ir.Value:
        """A register's lanes as they live across blocks."""
        return self.e.truths(lanes) if self._is_predicate(name) else lanes

    def from_home(self, name: str, lanes: ir.Value) -> ir.Value:
        """A register's lanes from what lives across blocks."""
        return self.e.from_truths(lanes) if self._is_predicate(name) else lanes

    def _is_predicate(self, name: str) -> bool:
        return self.operands.declared(name).kind == "predicate"

    # Counters ---------------------------------------------------------------------------------------------------

    def count_block(self, block: int, lanes: ir.Value) -> None:
        """Counts one execution of a block by `lanes` (an i32)."""
        warps, each = self.layout.warps(block), self.layout.lanes(block)
        if self.e.is_brief:
            assert each == warps + 1, "both counters lie side by side"
            self.e.intrinsic(COUNT, VOID, [self._count_place(warps), lanes])
            return
        self._add(warps, ir.Constant(I64, 1))
        self._add(each, self.population(lanes))

    def count_divergence(self, block: int) -> None:
        """Counts a branch at which lanes part."""
        self._add(self.layout.divergent(block), ir.Constant(I64, 1))

    def _count_place(self, count: int) -> ir.Value:
        return self.e.offset(self.counts, 8 * count)

    def _add(self, count: int, amount: ir.Value) -> None:
        place = self._count_place(count)
        self.b.store(self.b.add(self.b.load(place, typ=I64), amount), place)

    def population(self, mask: ir.Value) -> ir.Value:
        """The set bits of an i32, as an i64."""
        return self.b.zext(self.e.count_ones(mask), I64)

    # Instructions -----------------------------------------------------------------------------------------------

    def start_block(self) -> None:
        """Forgets what the last block knew."""
        self.values = {}
        self.written = set()
        self.is_whole = False
        self.m.tiles.forget()

    def _begin_stretch(self, position: int) -> None:
        """Cuts a long kernel's blocks into several of LLVM, which is slow to select instructions in long ones."""
        if self.is_long and position % STRETCH == STRETCH - 1:
            stretch = self.e.block("stretch")
            self.b.branch(stretch)
            self.b.position_at_end(stretch)

    def emit_block_body(self, index: int) -> None:
        """All instructions of a block but the one that chooses the next."""
        for position, instruction in enumerate(self.analysis.bound[index]):
            self._begin_stretch(position)
            match instruction.effect.carrier:
                case Carrier.MEANING:
                    self._emit(instruction)
                case Carrier.BLOCK_ARRIVAL:
                    self.arrive_in_passing(instruction)
                case Carrier.CLUSTER_ARRIVAL:
                    self.arrive_at_cluster(instruction)
                case Carrier.HOST:
                    self._call_host(instruction)
                case Carrier.MEETING:
                    self._start_instruction(instruction, self.guard_of(instruction))
                case Carrier.TRAP:
                    self._start_instruction(instruction, self.guard_of(instruction))
                    self._trap(instruction.instruction.place)
                case Carrier.BLOCK_END:
                    pass  # `emit_end` of the form
                case _:
                    assert_never(instruction.effect.carrier)
        self.m.end_block()

    @abstractmethod
    def arrive_in_passing(self, instruction: BoundInstruction) -> None:
        """Arrives at a barrier of the block without waiting there."""

    @abstractmethod
    def arrive_at_cluster(self, instruction: BoundInstruction) -> None:
        """Arrives at the barrier of the block's cluster."""

    def guard_of(self, instruction: BoundInstruction) -> Value | None:
        """The guard's truth."""
        guard = instruction.instruction.guard
        if guard is None:
            return None
        value = self.read_register(guard.register.name)
        t = TYPES["pred"]
        return self.m.bit_xor(t, value, self.m.constant(t, 1)) if guard.negated else value

    def lanes_where(self, condition: Value) -> ir.Value:
        """The lanes of the group in which a condition holds, an i32."""
        if condition.uniform:
            return self.b.select(condition.ir, self.group, ir.Constant(I32, 0))
        return self.b.and_(self.e.bits(condition.ir), self.group)

    def _emit(self, instruction: BoundInstruction) -> None:
        guard = self.guard_of(instruction)
        self._start_instruction(instruction, guard)
        place = self.analysis.site_of.get(id(instruction))
        self.m.site = None if place is None else self._count_place(self.layout.site(place))
        counted = self.analysis.guarded_flops.get(id(instruction))
        if counted is not None:
            self._add(self.layout.guarded(counted), self.population(self.m.active))
        sources = [self.operands.read(bound, instruction) for bound in instruction.sources]
        self.m.begin(instruction, sources)
        results = _as_sequence(instruction.form.row.meaning(self.m, instruction.form, *sources))
        self.m.finish(results)
        self._write_all(instruction, results, guard)

    def _start_instruction(self, instruction: BoundInstruction, guard: Value | None) -> None:
        """Says which lanes execute it; lanes that a mask of their own leaves out are told."""
        self.m.active = self.group if guard is None else self.lanes_where(guard)
        if instruction.form.row.takes_whole_warp:
            self._require_whole_warp(instruction)
        if instruction.membermask is not None:
            self.m.misuse = self._count_place(self.layout.misuse(self.analysis.namings[id(instruction)]))
            self.m.check_member(self.operands.read(instruction.membermask, instruction))

    def _require_whole_warp(self, instruction: BoundInstruction) -> None:
        """Stops the launch where only some lanes come; of the lanes of a block it is looked at once."""
        guarded = instruction.instruction.guard is not None
        if self.is_whole and not guarded:
            return
        self.is_whole |= not guarded
        active = self.m.active
        parted = self.b.icmp_unsigned("!=", active, ir.Constant(I32, -1))
        if guarded:
            parted = self.b.and_(parted, self.b.icmp_unsigned("!=", active, ir.Constant(I32, 0)))
        with self.e.when(parted, likely=False):
            lane = self.b.zext(self.e.count_trailing_zeros(active), I64)
            place = ir.Constant(I64, instruction.instruction.place)
            kind, detail = FaultKind.DIVERGENT_WARP, self.b.zext(active, I64)
            record_fault(self.e, self.context, kind, lane=lane, place=place, detail=detail)
            self.b.ret(ir.Constant(I32, Outcome.STOPPED))

    def _trap(self, place: int) -> None:
        hit = self.b.icmp_unsigned("!=", self.m.active, ir.Constant(I32, 0))
        with self.e.when(hit, likely=False):
            lane = self.b.zext(self.e.count_trailing_zeros(self.m.active), I64)
            record_fault(self.e, self.context, FaultKind.TRAP, lane=lane, place=ir.Constant(I64, place))
            self.b.ret(ir.Constant(I32, Outcome.STOPPED))

    def _call_host(self, instruction: BoundInstruction) -> None:
        """Has the host carry a call out for all active lanes, in ascending order; leaves where that stops the launch.

        Arguments and results lie in a table: operand · 32 + lane, 8 bytes each.
        """
        row, guard = instruction.host, self.guard_of(instruction)
        assert row is not None
        active = self.group if guard is None else self.lanes_where(guard)
        table = self.e.variable(ir.ArrayType(vector(I64), max(len(row.parameters), 1)))
        for place, bound in enumerate(instruction.sources):
            lanes = self.m.spread(self.m.resize(_BITS[bound.type.bits], U64, self.operands.read(bound, instruction)))
            self.b.store(lanes, self.e.offset(table, 8 * WARP_SIZE * place))
        function = self.b.inttoptr(self.e.load_field(Context, self.context, "host_call"), POINTER)
        numbers = [ir.Constant(I64, list(HOST_FUNCTIONS).index(row.name)), self.b.zext(active, I64)]
        kind = ir.FunctionType(I64, [I64, I64, POINTER])
        with self.e.when(self.b.icmp_unsigned("!=", active, ir.Constant(I32, 0))):
            stop = self.b.call(Callee(function, kind), [*numbers, table])
            with self.e.when(self.b.icmp_unsigned("!=", stop, ir.Constant(I64, 0)), likely=False):
                lane = self.b.sub(stop, ir.Constant(I64, 1))
                at = ir.Constant(I64, instruction.instruction.place)
                record_fault(self.e, self.context, FaultKind.HOST_CALL, lane=lane, place=at)
                self.leave(Outcome.STOPPED)
        for bound in instruction.destinations:
            lanes = Value(self.b.load(table, typ=vector(I64)), False)
            self._write(bound, self.m.resize(U64, _BITS[bound.type.bits], lanes), guard)

    def _write_all(self, instruction: BoundInstruction, results: Sequence[Value], guard: Value | None) -> None:
        for bound, value in zip(instruction.destinations, results, strict=False):
            self._write(bound, value, guard)

    def _write(self, bound: Bound, value: Value, guard: Value | None) -> None:
        match bound.operand:
            case Register(name):
                self.write_register(name, value, bound.type, guard)
            case Vector(elements):
                for element, (part, t) in zip(
                    elements, self.operands.unpack(value, bound.type, len(elements)), strict=True
                ):
                    self._write(Bound(element, t), part, guard)
            case Sink():
                return
            case _:
                raise AssertionError(f"destination {bound.operand}")

    def write_register(self, name: str, value: Value, t: ScalarType, guard: Value | None) -> None:
        """A register's new value; lanes that are guarded off keep the old one."""
        declared = self.operands.declared(name)
        value = self.operands.convert(value, t, declared)
        if guard is not None:
            value = self.m.select(declared, guard, value, self.read_register(name))
        self.values[name] = value if name in self.analysis.loose else self.m.settled(value)
        self.written.add(name)

    # Control ----------------------------------------------------------------------------------------------------

    def check_fuel(self, index: int) -> None:
        """At a back edge from a block: leaves if the launch has to stop."""
        arguments = [self.context, self.warp, ir.Constant(I64, self._end_of(index))]
        if self.e.is_brief:
            self._stop_if(self.e.intrinsic(SPEND, I32, arguments))
            return
        with self.e.when(spend_fuel(self.e, self.warp), likely=False):
            self._stop_if(self.e.intrinsic(REFUEL, I32, arguments))

    def _stop_if(self, stop: ir.Value) -> None:
        with self.e.when(self.b.icmp_unsigned("!=", stop, ir.Constant(I32, 0)), likely=False):
            self.b.ret(ir.Constant(I32, Outcome.STOPPED))

    def lose_patience(self, *edges: tuple[int, int]) -> ir.Value:
        """At back edges of loops that wait: whether others have to run now, at once where nobody else could end it."""
        place = self.e.field(Warp, self.warp, "patience")
        stands = not self.analysis.standing.isdisjoint(edges)
        left = ir.Constant(I64, -1) if stands else self.b.sub(self.b.load(place, typ=I64), ir.Constant(I64, 1))
        self.b.store(left, place)
        return self.b.icmp_signed("<", left, ir.Constant(I64, 0))

    def _end_of(self, index: int) -> int:
        """The place of a block's last instruction, or of the next block that has one (a latch has no instruction)."""
        blocks = self.analysis.graph.blocks
        for _ in blocks:
            if blocks[index].instructions:
                return blocks[index].instructions[-1].place
            index = blocks[index].successors[0]
        return 0

    def leave(self, outcome: int) -> None:
        """Returns to the scheduler."""
        self.b.ret(ir.Constant(I32, outcome))


def _as_sequence(result: Value | Sequence[Value] | None) -> Sequence[Value]:
    if result is None:
        return ()
    return (result,) if isinstance(result, Value) else result
