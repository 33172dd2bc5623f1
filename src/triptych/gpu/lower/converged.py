"""The converged form: all live lanes run the same block, registers are values, uniform ones scalars."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.analysis import KernelAnalysis
from triptych.gpu.lower.arrivals import Arrival, ArrivingForm
from triptych.gpu.lower.emitter import I32, I64, number, vector
from triptych.gpu.lower.machine import Value, element_type
from triptych.gpu.lower.records import EXITED, Outcome, Status, Warp


class ConvergedForm(ArrivingForm):
    """Leaves with `DIVERGED`, registers saved in the frame, as soon as live lanes part."""

    def __init__(self, analysis: KernelAnalysis, module: ir.Module, name: str) -> None:
        """Emits the function."""
        super().__init__(analysis, module, name)
        self.live = self.e.variable(I32, self.e.load_field(Warp, self.warp, "mask", I32), name="live")
        self.homes = {
            register: self.e.variable(self._home_type(register), name=register) for register in analysis.slots
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

    def read_home(self, name: str) -> Value:
        """See `KernelForm`."""
        place, kind = self.homes[name], self._home_type(name)
        value = self.e.get(place, kind)
        if name in self.analysis.uniformity:
            stride = self.analysis.uniformity[name].stride or 0
            return Value(value, stride == 0, stride)
        return Value(self.from_home(name, value), False)

    def _write_home(self, name: str, value: Value) -> None:
        if name in self.analysis.uniformity:
            stride = self.analysis.uniformity[name].stride
            assert stride == (0 if value.uniform else value.stride or None), f"{name} was found to have stride {stride}"
            self.b.store(value.ir, self.homes[name])
            return
        self.b.store(self.to_home(name, self.m.lanes_of(value)), self.homes[name])

    # Entering and leaving ---------------------------------------------------------------------------------------

    def _emit_entry(self) -> None:
        resume = self.e.load_field(Warp, self.warp, "resume", I32)
        start = self.b.block
        restores = [(index, self.e.block(f"resume{index}")) for index in sorted(self.analysis.resumable)]
        for index, block in restores:
            self.b.position_at_end(block)
            self._restore(index)
            self.b.branch(self.blocks[index])
        self.b.position_at_end(start)
        switch = self.b.switch(resume, restores[0][1])
        for index, block in restores[1:]:
            switch.add_case(ir.Constant(I32, index), block)

    def _live_in(self, index: int) -> list[str]:
        return sorted(self.analysis.liveness.live_in(index) & self.analysis.slots.keys())

    def _restore(self, index: int) -> None:
        if index == 0:  # what is read before it is written reads as zero
            for name in self._live_in(0):
                self.b.store(ir.Constant(self._home_type(name), None), self.homes[name])
            return
        names = self._live_in(index)
        first = self.e.count_trailing_zeros(self.e.get(self.live, I32))
        for name in names:
            lanes = self.load_frame(name)
            if name in self.analysis.uniformity:
                self._write_home(name, self._scalar(name, lanes, first))
            else:
                self._write_home(name, Value(lanes, False))

    def _scalar(self, name: str, lanes: ir.Value, first: ir.Value) -> Value:
        """A uniform or affine register from its lanes, of which `first` is live."""
        value = self.b.extract_element(lanes, first)
        stride = self.analysis.uniformity[name].stride or 0
        if stride:
            kind = value.type
            index = first if kind == I32 else self.b.zext(first, I64) if kind == I64 else self.b.trunc(first, kind)
            value = self.b.sub(value, self.b.mul(index, ir.Constant(kind, stride)))
        return Value(value, stride == 0, stride)

    def _save(self, names: list[str]) -> None:
        for name in names:
            self.store_frame(name, self.m.lanes_of(self.read_home(name)))

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
            self.count_block(self.counted_at[pieces.start], self.population(self.group))
        for index in pieces:
            self.emit_block_body(index)
        index = pieces[-1]
        block = self.analysis.graph.blocks[index]
        condition, targets, fall_through = self.branch_targets(index)
        picked = self.switch_index(index)
        live_out = self.analysis.liveness.live_out(index)
        for name in sorted(self.written & live_out & self.homes.keys()):
            self._write_home(name, self.values[name])
        if block.waits:
            self._wait(index, fall_through)
        elif picked is not None:
            self._switch(index, picked, targets)
        elif targets and condition is not None:
            self._branch(index, condition, targets[0], fall_through)
        else:
            self._go(index, targets[0] if targets else fall_through)

    def _go(self, index: int, target: int | None) -> None:
        """Ends the emitted block with a jump, or with the end of all lanes."""
        if target is None or target == self.analysis.graph.exit:
            self.leave(Outcome.DONE)
            return
        if target <= index:
            self.check_fuel(index)
        if (index, target) in self.analysis.waits:
            with self.e.when(self.lose_patience(), likely=False):
                self._suspend(target)
                self.leave(Outcome.YIELDED)
        self.b.branch(self.blocks[target])

    def _suspend(self, target: int) -> None:
        """What it takes to go on at a block later."""
        self._save(self._live_in(target))
        self._store_live()
        self.b.store(ir.Constant(I64, target), self.e.field(Warp, self.warp, "resume"))

    def _wait(self, index: int, following: int | None) -> None:
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
        self._go(index, following)
        self.b.position_at_end(some)
        first = self.b.extract_element(arrival.marks, self.e.count_trailing_zeros(self.group))
        inactive = self.b.not_(self.e.from_bits(self.group))
        same = self.b.or_(self.b.icmp_unsigned("==", arrival.marks, self.e.splat(first)), inactive)
        self.b.cbranch(self.e.all_lanes(same), together, parted)
        self.b.position_at_end(together)
        one = self.b.extract_element(self.m.spread(arrival.number), self.e.count_trailing_zeros(self.group))
        self._wait_together(arrival, self.b.zext(one, I64))
        self.b.position_at_end(parted)
        self._save(self._live_in(following))
        self._part_to(arrival.marks)
        self.set_results(arrival, self.e.from_bits(arrival.lanes))
        self.arrive(arrival, self.group)
        self.leave(Outcome.DIVERGED)

    def _wait_together(self, arrival: Arrival, number: ir.Value) -> None:
        self._suspend(arrival.following)
        values = {"barrier": number, "status": ir.Constant(I64, Status.WAITING)}
        for name, value in values.items():
            self.b.store(value, self.e.field(Warp, self.warp, name))
        if arrival.holds is not None:
            self.set_results(arrival, self.e.from_bits(self.group))
        self.arrive(arrival, self.group)
        self.leave(Outcome.BARRIER)

    def _branch(self, index: int, condition: Value, target: int, fall_through: int | None) -> None:
        other = self.analysis.graph.exit if fall_through is None else fall_through
        taken_block, other_block = self.e.block("taken"), self.e.block("not_taken")
        if condition.uniform:
            self.b.cbranch(condition.ir, taken_block, other_block)
        else:
            taken = self.b.and_(self.e.bits(condition.ir), self.group)
            mixed, parted = self.e.block("mixed"), self.e.block("parted")
            self.b.cbranch(self.b.icmp_unsigned("==", taken, self.group), taken_block, mixed)
            self.b.position_at_end(mixed)
            self.b.cbranch(self.b.icmp_unsigned("==", taken, ir.Constant(I32, 0)), other_block, parted)
            self.b.position_at_end(parted)
            self._part(index, condition, taken, target, other)
        self.b.position_at_end(taken_block)
        self._go(index, target)
        self.b.position_at_end(other_block)
        self._go(index, other)

    def _part(self, index: int, condition: Value, taken: ir.Value, target: int, other: int) -> None:
        self.count_divergence(index)
        remaining = self.b.and_(self.group, self.b.not_(taken))
        if self.only_ends(target):
            self._retire(target, taken, remaining)
            self._go(index, other)
        elif self.only_ends(other):
            self._retire(other, remaining, taken)
            self._go(index, target)
        else:
            ends = [number(vector(I32), EXITED if b == self.analysis.graph.exit else b) for b in (target, other)]
            self._diverge(self.b.select(condition.ir, *ends), (target, other))

    def _retire(self, index: int, ended: ir.Value, remaining: ir.Value) -> None:
        """Some lanes end at once; the rest stay converged."""
        if index != self.analysis.graph.exit:
            self.count_block(index, self.population(ended))
        self.b.store(remaining, self.live)
        self._store_live()

    def _diverge(self, following: ir.Value, targets: tuple[int, ...]) -> None:
        names: set[str] = set()
        for target in set(targets) - {self.analysis.graph.exit}:
            names |= set(self._live_in(target))
        self._save(sorted(names))
        self._part_to(following)
        self.leave(Outcome.DIVERGED)

    def _part_to(self, following: ir.Value) -> None:
        """Each live lane goes on at a block of its own, in the masked form."""
        alive = self.e.from_bits(self.group)
        self.set_next_blocks(self.b.select(alive, following, number(vector(I32), EXITED)))
        self._store_live()
        self.b.store(ir.Constant(I64, 1), self.e.field(Warp, self.warp, "mode"))

    def _switch(self, index: int, picked: Value, targets: tuple[int, ...]) -> None:
        if picked.uniform:
            chosen = picked.ir
        else:
            first = self.e.count_trailing_zeros(self.group)
            chosen = self.b.extract_element(self.m.spread(picked), first)
            following = self.pick_target(picked, targets)
            inactive = self.b.not_(self.e.from_bits(self.group))
            together_at = self.e.splat(self.b.extract_element(following, first))
            same = self.b.or_(self.b.icmp_unsigned("==", following, together_at), inactive)
            together, parted = self.e.block("together"), self.e.block("parted")
            self.b.cbranch(self.e.all_lanes(same), together, parted)
            self.b.position_at_end(parted)
            self.count_divergence(index)
            self._diverge(following, targets)
            self.b.position_at_end(together)
        arms = [self.e.block(f"case{position}") for position in range(len(targets))]
        switch = self.b.switch(chosen, arms[-1])
        for position, arm in enumerate(arms[:-1]):
            switch.add_case(ir.Constant(I32, position), arm)
        for target, arm in zip(targets, arms, strict=True):
            self.b.position_at_end(arm)
            self._go(index, target)
