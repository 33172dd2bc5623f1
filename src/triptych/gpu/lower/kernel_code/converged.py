"""The converged form: all live lanes run the same block, registers are values, uniform ones scalars."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.lower.analysis.asides import behind_aside
from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.kernel_code.arrivals import Arrival, ClusterWait
from triptych.gpu.lower.kernel_code.body import FRAME_ALIGNMENT
from triptych.gpu.lower.kernel_code.endings import EndingForm
from triptych.gpu.lower.kernel_code.tile_homes import TileHomes
from triptych.gpu.lower.primitives.emitter import AFFINE_TYPES, I32, I64, VOID, number, vector
from triptych.gpu.lower.primitives.machine import Value, element_type
from triptych.gpu.lower.primitives.outlined import PART, keep_name
from triptych.gpu.lower.records import EXITED, Outcome, Status, Warp
from triptych.gpu.lower.scheduling.barriers import CLUSTER_BARRIER

MANY_KEPT = 64
"""Registers kept over a wait from which on they live in the frame. LLVM's time for saving and fetching so many at once
grows with the square of their number, and the processor has no registers for them in between."""


class ConvergedForm(EndingForm):
    """Leaves with `DIVERGED`, registers saved in the frame, as soon as live lanes part."""

    def __init__(self, analysis: KernelAnalysis, module: ir.Module, name: str, *, is_brief: bool = False) -> None:
        """Emits the function; for `is_brief` see `Emitter`."""
        super().__init__(analysis, module, name, is_brief=is_brief)
        self.live = self.e.variable(I32, self.e.load_field(Warp, self.warp, "mask", I32), name="live")
        self.tile_homes = TileHomes(self)
        self.in_frame = self._find_kept_in_frame()
        self.homes = {
            register: self.frame_place(register)
            if register in self.in_frame
            else self.e.variable(self._home_type(register), name=register)
            for register in analysis.slots
            if register not in self.tile_homes.names
        }
        self.blocks = {pieces.start: self.e.block(f"block{pieces.start}") for pieces in analysis.pieces}
        self.counted_at = analysis.runs
        self._emit_entry()
        for pieces in analysis.pieces:
            self._emit_pieces(pieces)

    def alive_lanes(self) -> ir.Value:
        """See `ArrivingForm`."""
        return self.group

    def _home_type(self, name: str) -> ir.Type:
        if name in self.analysis.uniformity:
            return element_type(self.operands.declared(name))
        return vector(self.lane_type(name))

    def _find_kept_in_frame(self) -> frozenset[str]:
        """The registers that live in the frame all the time: none, unless many are kept over waits, or all is brief."""
        others = self.analysis.uniformity.keys() | self.tile_homes.names.keys()
        if self.e.is_brief:
            return frozenset(self.analysis.slots.keys() - others)
        kept = {name for index in self.analysis.resumable - {0} for name in self._live_in(index)} - others
        return frozenset(kept) if len(kept) >= MANY_KEPT else frozenset()

    def read_home(self, name: str) -> Value:
        """See `KernelForm`."""
        if name in self.tile_homes.names:
            return self.tile_homes.read(name)
        if name in self.in_frame:
            return Value(self.load_frame(name), False)
        place, kind = self.homes[name], self._home_type(name)
        value = self.e.get(place, kind)
        if name in self.analysis.uniformity:
            stride = self.analysis.uniformity[name].stride or 0
            return Value(value, stride == 0, stride)
        return Value(self.from_home(name, value), False)

    def keep(self, name: str, value: Value) -> None:
        """See `EndingForm`."""
        if name in self.analysis.uniformity:
            stride = self.analysis.uniformity[name].stride
            assert stride == (0 if value.uniform else value.stride or None), f"{name} was found to have stride {stride}"
            self.b.store(value.ir, self.homes[name])
            return
        if name in self.in_frame:
            self.store_frame(name, self.m.lanes_of(value))
        else:
            self.b.store(self.to_home(name, self.m.lanes_of(value)), self.homes[name])

    def keep_all(self, written: Mapping[str, Value], wanted: Set[str]) -> None:
        """See `EndingForm`."""
        super().keep_all({name: v for name, v in written.items() if name not in self.tile_homes.names}, wanted)
        self.tile_homes.keep(written, wanted)

    def start_block(self) -> None:
        """See `KernelForm`."""
        super().start_block()
        self.tile_homes.forget()

    def _emit(self, instruction: BoundInstruction) -> None:
        """See `KernelForm`."""
        self.tile_homes.aim(instruction)
        super()._emit(instruction)

    # Entering and leaving ---------------------------------------------------------------------------------------

    def _emit_entry(self) -> None:
        """Goes on at the block that the warp says, with what is wanted there."""
        self.tile_homes.enter()
        resume = self.e.load_field(Warp, self.warp, "resume", I32)
        later = sorted(self.analysis.resumable - {0})
        if later:
            start, behind = self.e.block("start"), self.e.block("behind")
            self.b.cbranch(self.b.icmp_unsigned("==", resume, ir.Constant(I32, 0)), start, behind)
            self.b.position_at_end(behind)
            self._resume(resume, later)
            self.b.position_at_end(start)
        self._clear()
        self.b.branch(self.blocks[0])

    def _resume(self, resume: ir.Value, later: Collection[int]) -> None:
        """Goes on at one of the later blocks; where all is brief, with what any of them wants."""
        if self.e.is_brief:
            self._restore({name for index in later for name in self._live_in(index)})
            self._branch_by(resume, {index: self.blocks[index] for index in later})
            return
        restores = {index: self.e.block(f"resume{index}") for index in later}
        self._branch_by(resume, restores)
        for index, block in restores.items():
            self.b.position_at_end(block)
            self._restore(set(self._live_in(index)))
            self.b.branch(self.blocks[index])

    def _branch_by(self, index: ir.Value, blocks: Mapping[int, ir.Block]) -> None:
        switch = self.b.switch(index, blocks[min(blocks)])
        for place, block in blocks.items():
            switch.add_case(ir.Constant(I32, place), block)

    def _live_in(self, index: int) -> list[str]:
        """The registers that live at a block, but for those of tiles."""
        live = self.analysis.liveness.live_in(index) & self.analysis.slots.keys()
        return sorted(live - self.tile_homes.names.keys())

    def _clear(self) -> None:
        """What is read before it is written reads as zero."""
        for name in self._live_in(0):
            self.b.store(ir.Constant(self._home_type(name), None), self.homes[name], align=FRAME_ALIGNMENT)
        self.tile_homes.clear(self.analysis.liveness.live_in(0))

    def _restore(self, wanted: Set[str]) -> None:
        names = sorted(wanted - self.in_frame)
        live = self.e.count_trailing_zeros(self.e.get(self.live, I32))
        first = self.b.zext(self.b.and_(live, ir.Constant(I32, WARP_SIZE - 1)), I64)
        for name in names:
            if name in self.analysis.uniformity:
                self.keep(name, self._scalar(name, first))
            else:
                self.keep(name, Value(self.load_frame(name), False))

    def _scalar(self, name: str, first: ir.Value) -> Value:
        """A uniform or affine register from the frame, where the lane `first`, an i64, is live."""
        lane, declared = self.lane_type(name), self.operands.declared(name)
        place = self.b.gep(self.frame_place(name), [first], source_etype=lane)
        value = self.b.load(place, typ=lane)
        if declared.kind == "predicate":
            value = self.b.icmp_unsigned("!=", value, ir.Constant(I32, 0))
        stride = self.analysis.uniformity[name].stride or 0
        if stride:
            index = first if lane == I64 else self.b.trunc(first, lane)
            value = self.b.sub(value, self.b.mul(index, number(lane, stride)))
        return Value(value, stride == 0, stride)

    def _save(self, names: list[str]) -> None:
        for name in names:
            if name not in self.in_frame:
                self._save_register(name, self.read_home(name))

    def _save_register(self, name: str, value: Value) -> None:
        if self.e.is_brief and name in self.analysis.uniformity and value.ir.type in AFFINE_TYPES:
            arguments = [self.frame_place(name), value.ir, number(value.ir.type, value.stride)]
            self.e.intrinsic(keep_name(value.ir.type), VOID, arguments)
        else:
            self.store_frame(name, self.m.lanes_of(value))

    def _store_live(self) -> None:
        mask = self.b.zext(self.e.get(self.live, I32), I64)
        self.b.store(mask, self.e.field(Warp, self.warp, "mask"))

    # Blocks -----------------------------------------------------------------------------------------------------

    def _emit_pieces(self, pieces: range) -> None:
        """A block, with all that it was cut into: lanes that run together wait for none of their warp."""
        self.b.position_at_end(self.blocks[pieces.start])
        self.start_block()
        self.group = self.e.get(self.live, I32)
        if any(self.analysis.graph.blocks[index].instructions for index in pieces):
            self.count_block(self.counted_at[pieces.start], self.group)
        for index in pieces:
            self.emit_block_body(index)
        self.emit_end(pieces[-1])

    def go(self, index: int, target: int | None) -> None:
        """See `EndingForm`."""
        if target is None or target == self.analysis.graph.exit:
            self.leave(Outcome.DONE)
            return
        if target <= index:
            self.check_fuel(index)
        if (index, target) in self.analysis.waits:
            with self.e.when(self.lose_patience((index, target)), likely=False):
                self._suspend(target)
                self.leave(Outcome.YIELDED)
        self.b.branch(self.blocks[target])

    def _suspend(self, target: int) -> None:
        """What it takes to go on at a block later."""
        self._save(self._live_in(target))
        self._store_live()
        self.b.store(ir.Constant(I64, target), self.e.field(Warp, self.warp, "resume"))

    def wait(self, index: int, following: int | None) -> None:
        """See `EndingForm`."""
        if following is None or following == self.analysis.graph.exit:
            self.leave(Outcome.DONE)
            return
        arrival = self.read_arrival(index, following)
        if self.analysis.bound[index][-1].instruction.guard is None and arrival.number.uniform:
            self._wait_together(arrival, self.b.zext(arrival.number.ir, I64))
            return
        none, some, together, parted = (self.e.block(n) for n in ("none", "some", "together", "parted"))
        self.b.cbranch(self.b.icmp_unsigned("==", arrival.lanes, ir.Constant(I32, 0)), none, some)
        self.b.position_at_end(none)
        self.go(index, following)
        self.b.position_at_end(some)
        marks = self.marks_of(arrival)
        self.b.cbranch(self.agree(marks), together, parted)
        self.b.position_at_end(together)
        one = self.b.extract_element(self.m.spread(arrival.number), self.e.count_trailing_zeros(self.group))
        self._wait_together(arrival, self.b.zext(one, I64))
        self.b.position_at_end(parted)
        self._save(self._live_in(following))
        self._part_to(marks)
        self.set_results(arrival, self.e.from_bits(arrival.lanes))
        self.arrive(arrival, self.group)
        self.leave(Outcome.DIVERGED)

    def wait_for_cluster(self, wait: ClusterWait, index: int, following: int) -> None:
        """See `EndingForm`; where only some lanes have to wait, the warp parts."""
        none, some, together, parted = (self.e.block(n) for n in ("none", "some", "together", "parted"))
        self.b.cbranch(self.b.icmp_unsigned("==", wait.lanes, ir.Constant(I32, 0)), none, some)
        self.b.position_at_end(none)
        self.go(index, following)
        self.b.position_at_end(some)
        self.b.cbranch(self.b.icmp_unsigned("==", wait.lanes, self.group), together, parted)
        self.b.position_at_end(together)
        self._wait_at(following, ir.Constant(I64, CLUSTER_BARRIER))
        self.leave(Outcome.BARRIER)
        self.b.position_at_end(parted)
        self._diverge(index, wait.marks, (following,))

    def _wait_at(self, following: int, number: ir.Value) -> None:
        self._suspend(following)
        values = {"barrier": number, "status": ir.Constant(I64, Status.WAITING)}
        for name, value in values.items():
            self.b.store(value, self.e.field(Warp, self.warp, name))

    def _wait_together(self, arrival: Arrival, number: ir.Value) -> None:
        self._wait_at(arrival.following, number)
        if arrival.holds is not None:
            self.set_results(arrival, self.e.from_bits(self.group))
        self.arrive(arrival, self.group)
        self.leave(Outcome.BARRIER)

    def part(self, index: int, condition: Value, taken: ir.Value, target: int, other: int) -> None:
        """See `EndingForm`; lanes for a block that only ends them are retired, and the rest stay together."""
        self.count_divergence(index)
        remaining = self.b.and_(self.group, self.b.not_(taken))
        if self.only_ends(target):
            self._retire(target, taken, remaining)
            self.go(index, other)
        elif self.only_ends(other):
            self._retire(other, remaining, taken)
            self.go(index, target)
        elif not self._run_asides(index, (target, taken), (other, remaining)):
            self._save_for((target, other))
            self.lose_patience_for(index, {target: taken, other: remaining})
            self.tile_homes.turn_to_registers()
            places = [ir.Constant(I32, place) for place in (target, other)]
            self.e.intrinsic(PART, VOID, [self.warp, self.group, taken, *places])
            self.leave(Outcome.DIVERGED)

    def _run_asides(self, index: int, *ways: tuple[int, ir.Value]) -> bool:
        """Has lanes that part run asides, the earlier block first, where all then stand at one later block."""
        (first, some), (second, rest) = sorted(ways, key=lambda way: way[0])
        end = behind_aside(self.analysis, first)
        if end is None or first <= index or end not in (second, behind_aside(self.analysis, second)):
            return False  # what goes back asks whether to go on, and to wait for others
        self._run_aside(first, some)
        if end != second:
            self._run_aside(second, rest)
        self.b.branch(self.blocks[end])
        return True

    def _run_aside(self, index: int, lanes: ir.Value) -> None:
        self.start_block()
        self.group = lanes
        if self.analysis.graph.blocks[index].instructions:
            self.count_block(index, lanes)
        self.emit_block_body(index)
        here = Value(self.e.from_bits(lanes), False)
        live_out = self.analysis.liveness.live_out(index)
        written: dict[str, Value] = {}
        for name in sorted(self.written & live_out & self.analysis.slots.keys()):
            declared = self.operands.declared(name)
            written[name] = self.m.select(declared, here, self.values[name], self.read_home(name))
        self.keep_all(written, live_out)

    def _retire(self, index: int, ended: ir.Value, remaining: ir.Value) -> None:
        """Some lanes end at once; the rest stay converged."""
        if index != self.analysis.graph.exit:
            self.count_block(index, ended)
        self.b.store(remaining, self.live)
        self._store_live()

    def _diverge(self, index: int, following: ir.Value, targets: tuple[int, ...]) -> None:
        self._save_for(targets)
        self.lose_patience_for(index, self.lanes_to(index, following, targets))
        self._part_to(following)
        self.leave(Outcome.DIVERGED)

    def _save_for(self, targets: Collection[int]) -> None:
        names: set[str] = set()
        for target in set(targets) - {self.analysis.graph.exit}:
            names |= set(self._live_in(target))
        self._save(sorted(names))

    def _part_to(self, following: ir.Value) -> None:
        """Each live lane goes on at a block of its own, in the masked form."""
        self.tile_homes.turn_to_registers()
        alive = self.e.from_bits(self.group)
        self.set_next_blocks(self.b.select(alive, following, number(vector(I32), EXITED)))
        self._store_live()
        self.b.store(ir.Constant(I64, 1), self.e.field(Warp, self.warp, "mode"))

    def switch(self, index: int, picked: Value, targets: tuple[int, ...]) -> None:
        """See `EndingForm`."""
        if picked.uniform:
            chosen = picked.ir
        else:
            first = self.e.count_trailing_zeros(self.group)
            chosen = self.b.extract_element(self.m.spread(picked), first)
            following = self.pick_target(picked, targets)
            together, parted = self.e.block("together"), self.e.block("parted")
            self.b.cbranch(self.agree(following), together, parted)
            self.b.position_at_end(parted)
            self.count_divergence(index)
            self._diverge(index, following, targets)
            self.b.position_at_end(together)
        arms = [self.e.block(f"case{position}") for position in range(len(targets))]
        switch = self.b.switch(chosen, arms[-1])
        for position, arm in enumerate(arms[:-1]):
            switch.add_case(ir.Constant(I32, position), arm)
        for target, arm in zip(targets, arms, strict=True):
            self.b.position_at_end(arm)
            self.go(index, target)
