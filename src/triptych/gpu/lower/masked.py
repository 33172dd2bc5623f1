"""The masked form: lanes stand at different blocks, registers live in the warp's frame, one group runs at a time."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.lower.analysis import KernelAnalysis
from triptych.gpu.lower.body import KernelForm
from triptych.gpu.lower.emitter import I1, I32, I64, POINTER, VOID, number, vector
from triptych.gpu.lower.emitter import lanes as affine_lanes
from triptych.gpu.lower.machine import Value
from triptych.gpu.lower.records import EXITED, WAITING, FaultKind, Outcome, Warp


class MaskedForm(KernelForm):
    """Runs the group of lanes at the lowest block until all live lanes meet at a block that can be resumed.

    Block numbers are priorities (`order_blocks`): lanes that run ahead wait where they will be joined.
    """

    def __init__(self, analysis: KernelAnalysis, module: ir.Module, name: str) -> None:
        """Emits the function."""
        super().__init__(analysis, module, name)
        self.head = self.e.block("head")
        self.b.branch(self.head)
        self._emit_head()
        for index in range(len(analysis.graph.blocks)):
            self._emit_block(index)

    def read_home(self, name: str) -> Value:
        """See `KernelForm`."""
        return Value(self.load_frame(name), False)

    def _next_blocks(self) -> ir.Value:
        return self.b.load(self.e.field(Warp, self.warp, "next_blocks_0"), align=8, typ=vector(I32))

    def _emit_head(self) -> None:
        self.b.position_at_end(self.head)
        following = self._next_blocks()
        lowest = self.e.intrinsic("llvm.vector.reduce.umin.v32i32", I32, [following])
        with self.e.when(self.b.icmp_unsigned("==", lowest, ir.Constant(I32, EXITED))):
            self.leave(Outcome.DONE)
        with self.e.when(self.b.icmp_unsigned(">=", lowest, ir.Constant(I32, WAITING))):
            self._release(following)
        self.next_blocks = following
        self.group = self.e.bits(self.b.icmp_unsigned("==", following, self.e.splat(lowest)))
        self.alive = alive = self.e.bits(self.b.icmp_unsigned("!=", following, number(vector(I32), EXITED)))
        dispatch = self.e.block("dispatch")
        together = self.e.block("together")
        self.b.cbranch(self.b.icmp_unsigned("==", self.group, alive), together, dispatch)
        self._emit_together(together, dispatch, lowest)
        self.b.position_at_end(dispatch)
        count = len(self.analysis.graph.blocks)
        self.blocks = [self.e.block(f"block{i}") for i in range(count)]
        lost = self.e.block("lost")
        switch = self.b.switch(lowest, lost)
        for index, block in enumerate(self.blocks):
            switch.add_case(ir.Constant(I32, index), block)
        self.b.position_at_end(lost)
        self.b.unreachable()

    def _release(self, following: ir.Value) -> None:
        """All live lanes wait at a barrier: so does the warp. They go on when it does."""
        exited = self.b.icmp_unsigned("==", following, number(vector(I32), EXITED))
        woken = self.b.and_(following, number(vector(I32), ~WAITING & 0xFFFF_FFFF))
        self.set_next_blocks(self.b.select(exited, following, woken))
        self.leave(Outcome.BARRIER)

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

    def require_members(self, instruction: BoundInstruction, membermask: Bound) -> None:
        """Lanes that the instruction names and that live, but stand elsewhere, would have to be waited for."""
        members = self.operands.read(membermask, instruction)
        first = self.e.count_trailing_zeros(self.group)
        named = members.ir if members.uniform else self.b.extract_element(self.m.spread(members), first)
        elsewhere = self.b.and_(self.b.and_(named, self.alive), self.b.not_(self.group))
        with self.e.when(self.b.icmp_unsigned("!=", elsewhere, ir.Constant(I32, 0)), likely=False):
            line, zero = ir.Constant(I64, instruction.instruction.line), ir.Constant(I64, 0)
            kind, lane = ir.Constant(I64, FaultKind.PARTED_WARP), self.b.zext(first, I64)
            null = ir.Constant(POINTER, None)
            self.e.intrinsic("triptych.fault", VOID, [self.context, null, kind, lane, line, zero])
            self.leave(Outcome.STOPPED)

    # Blocks -----------------------------------------------------------------------------------------------------

    def _emit_block(self, index: int) -> None:
        self.b.position_at_end(self.blocks[index])
        self.start_block()
        block = self.analysis.graph.blocks[index]
        if block.instructions:
            self.count_block(index, self.population(self.group))
        self.emit_block_body(index)
        following = self._following(index)
        chosen = self.e.from_bits(self.group)
        live_out = self.analysis.liveness.live_out(index)
        for name in sorted(self.written & live_out & self.analysis.slots.keys()):
            new, old = self.m.spread(self.values[name]), self.load_frame(name)
            self.store_frame(name, self.b.select(chosen, new, old))
        self.set_next_blocks(self.b.select(chosen, following, self.next_blocks))
        if any(successor <= index for successor in block.successors):
            self.check_fuel(index)
        self.b.branch(self.head)

    def _following(self, index: int) -> ir.Value:
        """Each lane's next block, a vector of i32."""
        block = self.analysis.graph.blocks[index]
        condition, targets, fall_through = self.branch_targets(index)
        if block.waits:
            return self._place(fall_through, waiting=True)
        picked = self.switch_index(index)
        if picked is not None:
            self._count_if_parted(index, self.pick_target(picked, targets))
            return self.pick_target(picked, targets)
        if targets and condition is not None:
            return self._choose(index, condition, targets[0], fall_through)
        return self._place(targets[0] if targets else fall_through)

    def _choose(self, index: int, condition: Value, target: int, fall_through: int | None) -> ir.Value:
        """A conditional branch; lanes that leave the others for a block that only ends them end at once."""
        other = self.analysis.graph.exit if fall_through is None else fall_through
        holds = self.m.spread(condition)
        taken = self.b.and_(self.e.bits(holds), self.group)
        mixed = (self.b.icmp_unsigned("!=", taken, end) for end in (ir.Constant(I32, 0), self.group))
        parted = self.b.and_(*mixed)
        places = [self._place(target), self._place(other)]
        ending = 0 if self.only_ends(target) else 1 if self.only_ends(other) else None
        with self.e.when(parted):
            self.count_divergence(index)
            if ending is not None and (target, other)[ending] != self.analysis.graph.exit:
                ended = taken if ending == 0 else self.b.and_(self.group, self.b.not_(taken))
                self.count_block((target, other)[ending], self.population(ended))
        if ending is not None:
            places[ending] = self.b.select(parted, number(vector(I32), EXITED), places[ending])
        return self.b.select(holds, *places)

    def _count_if_parted(self, index: int, following: ir.Value) -> None:
        first = self.b.extract_element(following, self.e.count_trailing_zeros(self.group))
        inactive = self.b.not_(self.e.from_bits(self.group))
        same = self.b.or_(self.b.icmp_unsigned("==", following, self.e.splat(first)), inactive)
        with self.e.when(self.b.not_(self.e.all_lanes(same))):
            self.count_divergence(index)

    def _place(self, target: int | None, *, waiting: bool = False) -> ir.Value:
        if target is None or target == self.analysis.graph.exit:
            return number(vector(I32), EXITED)
        return number(vector(I32), target | (WAITING if waiting else 0))
