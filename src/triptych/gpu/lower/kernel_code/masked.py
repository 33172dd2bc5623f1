"""The masked form: lanes stand at different blocks, registers live in the warp's frame, one group runs at a time."""

from __future__ import annotations

from collections.abc import Collection

from llvmlite import ir

from triptych.gpu.isa.effects import Effect
from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.analysis.regions import Region, find_regions
from triptych.gpu.lower.kernel_code.arrivals import ClusterWait
from triptych.gpu.lower.kernel_code.endings import EndingForm
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, number, vector
from triptych.gpu.lower.primitives.emitter import lanes as affine_lanes
from triptych.gpu.lower.primitives.machine import Value
from triptych.gpu.lower.records import EXITED, WAITING, WRAPPED, FaultKind, Outcome, Status, Warp
from triptych.gpu.lower.scheduling.services import record_fault


class MaskedForm(EndingForm):
    """Runs groups of lanes that stand at one block until all live lanes meet at a block that can be resumed.

    Block numbers are priorities (`order_blocks`): the group at the lowest block runs, and lanes that run ahead wait
    where they will be joined. A group that stays together and below all others goes from block to block directly; in a
    region it keeps its registers at hand. Where lanes wait for others, in a loop or at an instruction that names lanes
    elsewhere, the groups behind them come first for a while: blocks below the warp's `offset` count as the highest.
    """

    def __init__(self, analysis: KernelAnalysis, module: ir.Module, name: str, *, is_brief: bool = False) -> None:
        """Emits the function; for `is_brief` see `Emitter`."""
        super().__init__(analysis, module, name, is_brief=is_brief)
        self.syncs = {i for i, block in enumerate(analysis.bound) if block and block[0].membermask is not None}
        self.rotates = bool(analysis.waits or self.syncs)
        """Whether lanes may have to wait for lanes at higher blocks."""
        parted_late = self.b.icmp_unsigned("!=", self.e.load_field(Warp, self.warp, "offset"), ir.Constant(I64, 0))
        self.ran = self.e.variable(I1, parted_late, name="ran")
        """Whether a group ran since the circle began: the converged form did where it has set the `offset`."""
        self.held = self.e.variable(I32, ir.Constant(I32, 0), name="held")
        """Lanes that wait at the block whose other lanes run next."""
        self.regions = find_regions(analysis)
        self.region: Region | None = None
        self.homes = {
            (region.number, register): self.e.variable(self.home_type(register), name=register)
            for region in {region.number: region for region in self.regions.values()}.values()
            for register in sorted(region.registers)
        }
        count = len(analysis.graph.blocks)
        self.blocks = [self.e.block(f"block{i}") for i in range(count)]
        self.entries = [
            self.e.block(f"entry{i}") if i in self.regions else block for i, block in enumerate(self.blocks)
        ]
        self.ways_out: dict[tuple[int | None, int, bool], ir.Block] = {}
        self.head = self.e.block("head")
        self.b.branch(self.head)
        self._emit_head()
        for index in range(count):
            self._emit_entry(index)
            self._emit_block(index)

    def read_home(self, name: str) -> Value:
        """See `KernelForm`."""
        if self.region is None:
            return Value(self.load_frame(name), False)
        return Value(
            self.from_home(name, self.e.get(self.homes[self.region.number, name], self.home_type(name))), False
        )

    def alive_lanes(self) -> ir.Value:
        """See `ArrivingForm`."""
        return self.alive

    def home_type(self, name: str) -> ir.Type:
        """The type of a register at hand: a vector, of masks for predicates."""
        return vector(self.lane_type(name))

    # Choosing a group -------------------------------------------------------------------------------------------

    def _next_blocks(self) -> ir.Value:
        return self.b.load(self.e.field(Warp, self.warp, "next_blocks_0"), align=8, typ=vector(I32))

    def _emit_head(self) -> None:
        self.b.position_at_end(self.head)
        following = self._next_blocks()
        self.alive = self.e.bits(self.b.icmp_unsigned("!=", following, number(vector(I32), EXITED)))
        keys = following
        if self.rotates:
            self.offset = self.e.load_field(Warp, self.warp, "offset", I32)
            behind = self.b.icmp_unsigned("<", following, self.e.splat(self.offset))
            keys = self.b.select(behind, self.b.or_(following, number(vector(I32), WRAPPED)), following)
        lowest = self._least(keys)
        with self.e.when(self.b.icmp_unsigned("==", lowest, ir.Constant(I32, EXITED))):
            self.leave(Outcome.DONE)
        with self.e.when(self.b.icmp_unsigned(">=", lowest, ir.Constant(I32, WAITING))):
            self._wait_for_others()
        if self.rotates:
            with self.e.when(self.b.icmp_unsigned(">=", lowest, ir.Constant(I32, WRAPPED)), likely=False):
                self._end_circle(following)
        chosen = self.b.icmp_unsigned("==", keys, self.e.splat(lowest))
        if self.syncs:
            chosen = self.b.and_(chosen, self.b.not_(self.e.from_bits(self.e.get(self.held, I32))))
            self.b.store(ir.Constant(I32, 0), self.held)
        self.group = self.e.bits(chosen)
        self.others = self._least(self.b.select(chosen, number(vector(I32), EXITED), keys))
        """The key of the first group that is not the one that runs."""
        self.alone = self.b.icmp_unsigned("==", self.group, self.alive)
        dispatch, together = self.e.block("dispatch"), self.e.block("together")
        self.b.cbranch(self.alone, together, dispatch)
        self._emit_together(together, dispatch, lowest)
        self.b.position_at_end(dispatch)
        lost = self.e.block("lost")
        switch = self.b.switch(lowest, lost)
        for index, block in enumerate(self.entries):
            switch.add_case(ir.Constant(I32, index), block)
        self.b.position_at_end(lost)
        self.b.unreachable()

    def _least(self, keys: ir.Value) -> ir.Value:
        return self.e.intrinsic("llvm.vector.reduce.umin.v32i32", I32, [keys])

    def _wait_for_others(self) -> None:
        """No live lane can run before a barrier completes."""
        self._set_offset(0)
        self.b.store(ir.Constant(I64, Status.WAITING), self.e.field(Warp, self.warp, "status"))
        self.leave(Outcome.BARRIER)

    def _set_offset(self, index: int) -> None:
        if self.rotates:
            self.set_offset(index)

    def _end_circle(self, following: ir.Value) -> None:
        """All groups had their turn since the lowest block's: the order is as usual again, or other warps run."""
        ran = self.e.get(self.ran, I1)
        self.b.store(ir.Constant(I1, 0), self.ran)
        self._set_offset(0)
        with self.e.when(self.b.not_(ran)):
            waiting = self.b.icmp_unsigned(
                "!=", self.b.and_(following, number(vector(I32), WAITING)), number(vector(I32), 0)
            )
            at_barrier = self.b.and_(self.e.bits(waiting), self.alive)
            with self.e.when(self.b.icmp_unsigned("!=", at_barrier, ir.Constant(I32, 0))):
                self._wait_for_others()
            record_fault(self.e, self.context, FaultKind.DEADLOCK)
            self._wait_for_others()
        left = self.e.load_field(Warp, self.warp, "patience")
        with self.e.when(self.b.icmp_signed("<", left, ir.Constant(I64, 0))):
            self.leave(Outcome.YIELDED)
        self.b.branch(self.head)

    def _emit_together(self, together: ir.Block, dispatch: ir.Block, lowest: ir.Value) -> None:
        """All live lanes meet: on in the converged form, if its scalars are the same in all of them."""
        self.b.position_at_end(together)
        switch = self.b.switch(lowest, dispatch)
        for index in sorted(self.analysis.resumable):
            block = self.e.block(f"converge{index}")
            switch.add_case(ir.Constant(I32, index), block)
            self.b.position_at_end(block)
            agreed = self._scalars_agree(index)
            done = self.e.block("converged")
            self.b.cbranch(agreed, done, dispatch)
            self.b.position_at_end(done)
            self._set_offset(0)
            self.b.store(self.b.zext(self.group, I64), self.e.field(Warp, self.warp, "mask"))
            self.b.store(ir.Constant(I64, index), self.e.field(Warp, self.warp, "resume"))
            self.leave(Outcome.CONVERGED)

    def _scalars_agree(self, index: int) -> ir.Value:
        wanted = self.analysis.liveness.live_in(index) & self.analysis.uniformity.keys() & self.analysis.slots.keys()
        first = self.e.count_trailing_zeros(self.group)
        inactive = self.b.not_(self.e.from_bits(self.group))
        agreed: ir.Value = number(vector(I1), 1)
        for name in sorted(wanted if index else ()):
            lanes = self._bits(self.load_frame(name))
            stride = self.analysis.uniformity[name].stride
            if stride:
                lanes = self.b.sub(lanes, affine_lanes(lanes.type.element, stride))
            same = self.b.icmp_unsigned("==", lanes, self.e.splat(self.b.extract_element(lanes, first)))
            agreed = self.b.and_(agreed, self.b.or_(same, inactive))
        return self.e.all_lanes(agreed)

    def _bits(self, lanes: ir.Value) -> ir.Value:
        kind = lanes.type.element
        if isinstance(kind, ir.IntType):
            return lanes
        return self.b.bitcast(lanes, vector(I64 if isinstance(kind, ir.DoubleType) else I32))

    # Blocks -----------------------------------------------------------------------------------------------------

    def _emit_entry(self, index: int) -> None:
        """The way into a block of a region from outside: its registers come to hand."""
        region = self.regions.get(index)
        if region is None:
            return
        self.b.position_at_end(self.entries[index])
        for name in sorted(self.analysis.liveness.live_in(index) & region.registers):
            self.b.store(self.to_home(name, self.load_frame(name)), self.homes[region.number, name])
        self.b.branch(self.blocks[index])

    def _emit_block(self, index: int) -> None:
        self.b.position_at_end(self.blocks[index])
        self.start_block()
        self.region = self.regions.get(index)
        block = self.analysis.graph.blocks[index]
        if index in self.syncs:
            self._await_members(index)
        if self.rotates:
            self.b.store(ir.Constant(I1, 1), self.ran)
        if block.instructions:
            self.count_block(index, self.group)
        self.emit_block_body(index)
        self.emit_end(index)

    def _await_members(self, index: int) -> None:
        """Lanes that the block's first instruction names and that live, but stand elsewhere, are waited for.

        Each lane waits for those of its own mask: where only some have what they wait for, these run, and the others
        stay at the block.
        """
        instruction = self.analysis.bound[index][0]
        assert instruction.membermask is not None
        members = self.m.whole(self.operands.read(instruction.membermask, instruction))
        elsewhere, nobody = self.b.and_(self.alive, self.b.not_(self.group)), ir.Constant(I32, 0)
        waits, complete = self.e.block("waits"), self.e.block("complete")
        if members.uniform:
            missing = self.b.and_(members.ir, elsewhere)
            self.b.cbranch(self.b.icmp_unsigned("!=", missing, nobody), waits, complete)
        else:
            missing = self.b.and_(members.ir, self.e.splat(elsewhere))
            lacking = self.e.bits(self.b.icmp_unsigned("!=", missing, number(vector(I32), 0)))
            lacking = self.b.and_(lacking, self.group)
            some, parted = self.e.block("some"), self.e.block("parted")
            self.b.cbranch(self.b.icmp_unsigned("!=", lacking, nobody), some, complete)
            self.b.position_at_end(some)
            self.b.cbranch(self.b.icmp_unsigned("==", lacking, self.group), waits, parted)
            self.b.position_at_end(parted)
            self.b.store(lacking, self.held)
            self.b.branch(self._way_out(index, directly=False))
        self.b.position_at_end(waits)
        self._set_offset(index + 1)
        self.b.branch(self._way_out(index, directly=False))
        self.b.position_at_end(complete)

    def keep(self, name: str, value: Value) -> None:
        """See `EndingForm`; in the lanes that run."""
        lanes = self.m.lanes_of(value)
        if self.region is not None:  # of the other lanes it is not wanted
            self.b.store(self.to_home(name, lanes), self.homes[self.region.number, name])
            return
        self.store_frame(name, self.b.select(self.e.from_bits(self.group), lanes, self.load_frame(name)))

    def steering(self, condition: Value) -> Value:
        """See `EndingForm`; every lane looks for itself."""
        return Value(self.m.spread(condition), False)

    # Ends of blocks ---------------------------------------------------------------------------------------------

    def _hand_back(self, targets: Collection[int]) -> None:
        """What a region wrote goes back to the frame, as far as it is wanted at one of the blocks."""
        if self.region is None:
            return
        wanted: set[str] = set()
        for target in set(targets) - {self.analysis.graph.exit}:
            wanted |= self.analysis.liveness.live_in(target)
        chosen = self.e.from_bits(self.group)
        for name in sorted(wanted & self.region.written):
            home = self.e.get(self.homes[self.region.number, name], self.home_type(name))
            self.store_frame(name, self.b.select(chosen, self.from_home(name, home), self.load_frame(name)))

    def _send(self, following: ir.Value) -> None:
        """The group's lanes go to blocks of their own, a vector of i32; the next group is chosen."""
        chosen = self.e.from_bits(self.group)
        self.set_next_blocks(self.b.select(chosen, following, self._next_blocks()))
        self.b.branch(self.head)

    def _way_out(self, target: int, *, directly: bool) -> ir.Block:
        """Code that takes the group to a block: `directly` where the order permits, else as one group among all."""
        key = (None if self.region is None else self.region.number, target, directly)
        known = self.ways_out.get(key)
        if known is None:
            known = self.ways_out[key] = self.e.block(f"to{target}")
            here = self.b.block
            self.b.position_at_end(known)
            self._hand_back([target])
            if directly:
                later = self.e.block("later")
                self.b.cbranch(self._is_next(target), self.entries[target], later)
                self.b.position_at_end(later)
            self._send(self.place_of(target))
            self.b.position_at_end(here)
        return known

    def _is_next(self, target: int) -> ir.Value:
        """Whether the group, at a block, would be chosen again and stay as it is."""
        index = ir.Constant(I32, target)
        first = self.b.icmp_unsigned("<", index, self.others)
        if self.rotates:
            first = self.b.and_(first, self.b.icmp_unsigned(">=", index, self.offset))
        if target in self.analysis.resumable:
            first = self.b.and_(first, self.b.not_(self.alone))
        return first

    def go(self, index: int, target: int | None) -> None:
        """See `EndingForm`; the whole group goes."""
        if target is None or target == self.analysis.graph.exit:
            self._send(self.place_of(None))
            return
        if target <= index:
            self.check_fuel(index)
        if (index, target) in self.analysis.waits:
            with self.e.when(self.lose_patience((index, target)), likely=False):
                self._set_offset(index + 1)
                self.b.branch(self._way_out(target, directly=False))
        if any(i.effect is Effect.BLOCK_ARRIVAL for i in self.analysis.bound[index]):
            self.b.branch(self._way_out(target, directly=False))  # other lanes may have been released
        elif self.region is not None and self.regions.get(target) is self.region:
            away = self._way_out(target, directly=False)
            self.b.cbranch(self._is_next(target), self.blocks[target], away)
        else:
            self.b.branch(self._way_out(target, directly=True))

    def part(self, index: int, condition: Value, taken: ir.Value, target: int, other: int) -> None:
        """See `EndingForm`; lanes that leave the others for a block that only ends them end at once."""
        self.count_divergence(index)
        if any(successor <= index for successor in (target, other)):
            self.check_fuel(index)
        places = [self.place_of(target), self.place_of(other)]
        ending = 0 if self.only_ends(target) else 1 if self.only_ends(other) else None
        if ending is not None:
            places[ending] = self.place_of(None)
            end = (target, other)[ending]
            if end != self.analysis.graph.exit:
                ended = taken if ending == 0 else self.b.and_(self.group, self.b.not_(taken))
                self.count_block(end, ended)
        self._hand_back((target, other))
        following = self.b.select(condition.ir, *places)
        self.lose_patience_for(index, self.lanes_to(index, following, (target, other)))
        self._send(following)

    def switch(self, index: int, picked: Value, targets: tuple[int, ...]) -> None:
        """See `EndingForm`."""
        following = self.pick_target(picked, targets)
        with self.e.when(self.b.not_(self.agree(following))):
            self.count_divergence(index)
        if any(target <= index for target in targets):
            self.check_fuel(index)
        self._hand_back(targets)
        self.lose_patience_for(index, self.lanes_to(index, following, targets))
        self._send(following)

    def wait(self, index: int, following: int | None) -> None:
        """See `EndingForm`; lanes that the barrier's guard excludes go on."""
        if following is None or following == self.analysis.graph.exit:
            self._send(self.place_of(None))
            return
        self._hand_back([following])
        arrival = self.read_arrival(index, following)
        chosen = self.e.from_bits(self.group)
        self.set_next_blocks(self.b.select(chosen, self.marks_of(arrival), self._next_blocks()))
        self.set_results(arrival, self.e.from_bits(arrival.lanes))
        self.arrive(arrival, self.alive)
        self.b.branch(self.head)

    def wait_for_cluster(self, wait: ClusterWait, index: int, following: int) -> None:
        """See `EndingForm`; lanes that need not wait go on."""
        self._hand_back([following])
        self._send(wait.marks)
