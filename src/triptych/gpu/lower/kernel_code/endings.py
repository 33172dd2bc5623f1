"""How a block ends: what both forms of a kernel do where its last instruction chooses the next block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set
from functools import reduce

from llvmlite import ir

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.types import U32
from triptych.gpu.lower.kernel_code.arrivals import ArrivingForm, ClusterWait
from triptych.gpu.lower.primitives.emitter import I32, I64, number, vector
from triptych.gpu.lower.primitives.machine import Value
from triptych.gpu.lower.records import EXITED, Warp


class EndingForm(ArrivingForm):
    """A form of a kernel whose blocks end in a barrier, a choice among many blocks, a branch or a jump."""

    @abstractmethod
    def keep(self, name: str, value: Value) -> None:
        """A register that the block wrote, for blocks behind it."""

    def keep_all(self, written: Mapping[str, Value], wanted: Set[str]) -> None:
        """What the block wrote, as far as it is among the registers that are wanted behind it."""
        for name, value in written.items():
            self.keep(name, value)

    @abstractmethod
    def wait(self, index: int, following: int | None) -> None:
        """Ends a block at a barrier, in front of the block `following` (None: all lanes end)."""

    @abstractmethod
    def wait_for_cluster(self, wait: ClusterWait, index: int, following: int) -> None:
        """Ends a block at the wait for its cluster, in front of the block `following`."""

    @abstractmethod
    def switch(self, index: int, picked: Value, targets: tuple[int, ...]) -> None:
        """Ends a block at which each lane picks among blocks."""

    @abstractmethod
    def part(self, index: int, condition: Value, taken: ir.Value, target: int, other: int) -> None:
        """Ends a block from which the lanes `taken` (an i32), where the condition holds, go elsewhere than the rest."""

    @abstractmethod
    def go(self, index: int, target: int | None) -> None:
        """Ends a block from which all lanes go to another; None ends them."""

    def steering(self, condition: Value) -> Value:
        """The condition of a branch as this form looks at it."""
        return condition

    def emit_end(self, index: int) -> None:
        """Keeps what the block wrote and is wanted behind it, and goes on where its last instruction says."""
        targets, behind = self.analysis.targets(index), self.analysis.fall_through(index)
        condition = self.guard_of(self.analysis.bound[index][-1]) if targets else None
        picked = self._picked(index)
        condition = None if condition is None else self.steering(condition)
        live_out = self.analysis.liveness.live_out(index)
        written = sorted(self.written & live_out & self.analysis.slots.keys())
        self.keep_all({name: self.values[name] for name in written}, live_out)
        if self.analysis.graph.blocks[index].waits and self.analysis.bound[index][-1].effect is Effect.CLUSTER_WAIT:
            assert behind is not None, "no body ends with what does not leave"
            self.wait_for_cluster(self.read_cluster_wait(self.analysis.bound[index][-1], behind), index, behind)
        elif self.analysis.graph.blocks[index].waits:
            self.wait(index, behind)
        elif picked is not None:
            self.switch(index, picked, targets)
        elif targets and condition is not None:
            self._branch(index, condition, targets[0], self.analysis.graph.exit if behind is None else behind)
        else:
            self.go(index, targets[0] if targets else behind)

    def _picked(self, index: int) -> Value | None:
        """The index of a block's `brx.idx` or call through a pointer, None where it ends otherwise."""
        if not self.analysis.targets(index):
            return None
        terminator = self.analysis.bound[index][-1]
        if terminator.effect not in (Effect.SWITCH, Effect.CALL) or not terminator.sources:
            return None
        return self.operands.read(terminator.sources[0], terminator)

    def _branch(self, index: int, condition: Value, target: int, other: int) -> None:
        if target == other:  # lanes that stand at one block run it together
            self.go(index, target)
            return
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
            self.part(index, condition, taken, target, other)
        self.b.position_at_end(taken_block)
        self.go(index, target)
        self.b.position_at_end(other_block)
        self.go(index, other)

    def lose_patience_for(self, index: int, going: Mapping[int, ir.Value]) -> None:
        """Where lanes part: if some go round a loop that waits, too often, those at higher blocks run before them.

        `going`: the lanes that go on at a block, an i32, at least of those blocks where a loop that waits begins anew.
        """
        round_again = sorted({(index, target) for target in going} & self.analysis.waits)
        for stands in (False, True):  # those that stand still take all of it, whatever others took
            edges = [edge for edge in round_again if (edge in self.analysis.standing) is stands]
            if edges:
                some = reduce(self.b.or_, [going[target] for _, target in edges])
                some = self.b.icmp_unsigned("!=", some, ir.Constant(I32, 0))
                with self.e.when(some), self.e.when(self.lose_patience(*edges), likely=False):
                    self.set_offset(index + 1)

    def lanes_to(self, index: int, following: ir.Value, targets: Collection[int]) -> dict[int, ir.Value]:
        """For `lose_patience_for`: by each lane's block, a vector of i32, of the `targets` that lanes pick from."""
        waits = {target for target in targets if (index, target) in self.analysis.waits}
        return {
            target: self.b.and_(self.e.bits(self.b.icmp_unsigned("==", following, self.place_of(target))), self.group)
            for target in sorted(waits)
        }

    def set_offset(self, index: int) -> None:
        """Parted lanes at blocks from this one on run before the others."""
        self.b.store(ir.Constant(I64, index), self.e.field(Warp, self.warp, "offset"))

    def only_ends(self, index: int) -> bool:
        """Whether a block does nothing but end its lanes."""
        return index == self.analysis.graph.exit or self.analysis.graph.blocks[index].only_ends

    def place_of(self, target: int | None) -> ir.Value:
        """The same next block for every lane, a vector of i32; None is that of lanes that have ended."""
        return number(vector(I32), EXITED if target is None or target == self.analysis.graph.exit else target)

    def pick_target(self, picked: Value, targets: Sequence[int]) -> ir.Value:
        """Each lane's block of a `brx.idx`, a vector of i32; indices beyond the list take its last."""
        wide = Value(self.m.spread(picked), False)
        chosen: ir.Value = number(vector(I32), targets[-1])
        for position, target in enumerate(targets[:-1]):
            here = self.m.compare(U32, "eq", wide, self.m.constant(U32, position))
            chosen = self.b.select(here.ir, number(vector(I32), target), chosen)
        return chosen

    def agree(self, lanes: ir.Value) -> ir.Value:
        """Whether the lanes of the group all have the same in a vector."""
        first = self.b.extract_element(lanes, self.e.count_trailing_zeros(self.group))
        inactive = self.b.not_(self.e.from_bits(self.group))
        return self.e.all_lanes(self.b.or_(self.b.icmp_unsigned("==", lanes, self.e.splat(first)), inactive))

    def set_next_blocks(self, blocks: ir.Value) -> None:
        """Each lane's next block."""
        self.b.store(blocks, self.e.field(Warp, self.warp, "next_blocks_0"), align=8)
