"""One warp, instruction by instruction: each lane stands at a block, and the lanes at the lowest block run next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from triptych.core.errors import BudgetExceeded, DeadlockError, DivergentWarp, KernelFault
from triptych.core.settings import settings
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.calls import HostFault
from triptych.gpu.isa.effects import Carrier, Effect
from triptych.gpu.isa.types import U64
from triptych.gpu.oracle.barriers import Barriers, State
from triptych.gpu.oracle.cluster import CLUSTER_BARRIER, ClusterBarrier
from triptych.gpu.oracle.counting import Counts
from triptych.gpu.oracle.host import Device, LaneHost
from triptych.gpu.oracle.machine import NumpyMachine
from triptych.gpu.oracle.operands import Registers
from triptych.gpu.oracle.program import Kernel
from triptych.gpu.oracle.values import LANES, Lanes, Mask, convert

PATIENCE = 64
"""Iterations of loops that wait, until other warps run."""


class Warp:
    """The state of a warp: registers, and for each lane the block where it stands."""

    def __init__(
        self, kernel: Kernel, registers: Registers, machine: NumpyMachine, counts: Counts, lanes: int,
        barriers: Barriers, cluster: ClusterBarrier, device: Device,
    ) -> None:  # fmt: skip
        """`lanes` of the warp have a thread; `barriers` are the block's, `cluster` is that of all blocks of its."""
        self.cluster = cluster
        self.device = device
        self.kernel = kernel
        self.registers = registers
        self.machine = machine
        self.counts = counts
        self.barriers = barriers
        self.exit = kernel.graph.exit
        self.at = np.where(np.arange(LANES) < lanes, 0, self.exit)
        self.waiting = np.full(LANES, -1)
        """The barrier at which each lane waits, -1 for those that do not."""
        self.waits_at: list[BoundInstruction | None] = [None] * LANES
        self.fuel = settings().budget
        self.patience = PATIENCE
        self.state = State.READY
        self.offset = 0
        """Lanes at blocks from here on run before the others."""
        self.ran = False

    @property
    def live(self) -> Mask:
        """The lanes that have not ended."""
        return self.at != self.exit

    def run(self) -> State:
        """Runs until the warp ends, waits at barriers or has waited in loops for long."""
        self.ran = False
        while self.live.any():
            ready = self.live & (self.waiting < 0)
            if not ready.any():
                self.offset = 0
                return State.WAITING
            keys = np.where(self.at < self.offset, self.at + len(self.kernel.graph.blocks), self.at)
            block = int(keys[ready].min()) % len(self.kernel.graph.blocks)
            if block < self.offset:
                state = self._end_circle()
                if state is not None:
                    return state
                continue
            group = ready & (self.at == block)
            complete = self._with_their_members(block, group)
            if not complete.any():
                self.offset = block + 1
                continue
            self.ran = True
            self._run_block(block, complete)
        return State.DONE

    def _end_circle(self) -> State | None:
        """All groups had their turn: on in the usual order, or something else has to run."""
        ran, self.ran, self.offset = self.ran, False, 0
        if not ran and (self.live & (self.waiting >= 0)).any():
            return State.WAITING
        if not ran:
            raise DeadlockError(f"kernel {self.kernel.function.name}: lanes of a warp wait for each other")
        if self.patience >= 0:
            return None
        self.patience = PATIENCE
        return State.READY

    # Blocks -----------------------------------------------------------------------------------------------------

    def _run_block(self, block: int, group: Mask) -> None:
        piece, bound = self.kernel.graph.blocks[block], self.kernel.bound[block]
        for instruction in bound:
            self._count(instruction, group)
            self._run_in_passing(instruction, group)
        link = self.kernel.links.get(block, ())
        if any(successor <= block for successor in link or piece.successors):
            self._burn()
        if len(link) == 1:
            self.at[group] = link[0]
        elif link:
            self._switch(bound[-1], group, link)
        elif not piece.targets:
            following = self.exit if piece.fall_through is None else piece.fall_through
            self.at[group] = following
            if piece.waits and following != self.exit:
                self._wait(bound[-1], group & self._guard(bound[-1]))
        elif bound[-1].effect is Effect.SWITCH:
            self._switch(bound[-1], group, piece.targets)
        else:
            self._branch(bound[-1], group, piece.targets[0], piece.fall_through)
        edges = {(block, int(following)) for following in self.at[group]} & self.kernel.waits
        if edges:
            self.patience = -1 if edges & self.kernel.standing else self.patience - 1
            if self.patience < 0:
                self.offset = block + 1

    def _run_in_passing(self, instruction: BoundInstruction, group: Mask) -> None:
        match instruction.effect.carrier:
            case Carrier.MEANING:
                self._execute(instruction, group)
            case Carrier.BLOCK_ARRIVAL:
                self.barriers.arrive(self, instruction, group & self._guard(instruction))
            case Carrier.CLUSTER_ARRIVAL:
                self.cluster.arrive(self, group & self._guard(instruction))
            case Carrier.HOST:
                self._call_host(instruction, group & self._guard(instruction))
            case Carrier.MEETING | Carrier.BLOCK_END | Carrier.TRAP:
                pass  # `_with_their_members`; what `_run_block` does behind the instructions
            case _:
                assert_never(instruction.effect.carrier)

    def _wait(self, instruction: BoundInstruction, lanes: Mask) -> None:
        if instruction.effect is Effect.CLUSTER_WAIT:
            self.waiting[self.cluster.wait(self, lanes)] = CLUSTER_BARRIER
            return
        barrier = instruction.barrier
        assert barrier is not None
        self.waiting = np.where(lanes, self.registers.read(barrier.number), self.waiting)
        for lane in np.flatnonzero(lanes):
            self.waits_at[lane] = instruction
        self.barriers.arrive(self, instruction, lanes)

    def _burn(self) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise BudgetExceeded(f"kernel {self.kernel.function.name}: a warp ran too many loop iterations")

    def _branch(self, instruction: BoundInstruction, group: Mask, target: int, fall_through: int | None) -> None:
        taken = group & self._guard(instruction)
        if instruction.effect is Effect.TRAP and taken.any():
            raise KernelFault(f"kernel {self.kernel.function.name}: trap executed")
        others = group & ~taken
        other = self.exit if fall_through is None else fall_through
        self.at[taken], self.at[others] = target, other
        if target != other and taken.any() and others.any():
            self.counts.count_divergence(instruction)
            if self.kernel.only_ends(target):
                self._end(taken, target)
            elif self.kernel.only_ends(other):
                self._end(others, other)

    def _end(self, lanes: Mask, block: int) -> None:
        """Lanes that leave the others for a block that only ends them end at once: there is nothing to wait for."""
        if block != self.exit:
            self._count(self.kernel.bound[block][0], lanes)
        self.at[lanes] = self.exit

    def _switch(self, instruction: BoundInstruction, group: Mask, targets: Sequence[int]) -> None:
        picked = self.registers.read(instruction.sources[0])
        for lane in np.flatnonzero(group):
            self.at[lane] = targets[min(int(picked[lane]), len(targets) - 1)]
        if len(set(self.at[group].tolist())) > 1:
            self.counts.count_divergence(instruction)

    # Instructions -----------------------------------------------------------------------------------------------

    def _guard(self, instruction: BoundInstruction) -> Mask:
        guard = instruction.instruction.guard
        if guard is None:
            return np.ones(LANES, np.bool_)
        value = self.registers.get(guard.register.name)
        return ~value if guard.negated else value

    def _count(self, instruction: BoundInstruction, group: Mask) -> None:
        if instruction.instruction.added:
            return
        active = group & self._guard(instruction)
        self.counts.count_instruction(instruction, int(group.sum()), int(active.sum()))

    def _with_their_members(self, block: int, group: Mask) -> Mask:
        """The lanes of a group whose mask, at the block's first instruction, names no live lane elsewhere."""
        bound = self.kernel.bound[block]
        if not bound or bound[0].membermask is None:
            return group
        masks = self.registers.read(bound[0].membermask).tolist()
        elsewhere = np.flatnonzero(self.live & ~group).tolist()
        return group & ~np.array([any(mask >> lane & 1 for lane in elsewhere) for mask in masks])

    def _call_host(self, instruction: BoundInstruction, lanes: Mask) -> None:
        """The host carries a call out for one lane after another."""
        row, text = instruction.host, instruction.instruction
        assert row is not None
        given = [self.registers.read(bound) for bound in instruction.sources]
        results = np.zeros(LANES, np.uint64)
        place = self.registers.coordinates
        for lane in np.flatnonzero(lanes).tolist():
            host = LaneHost(self.device, self.machine.memory, place.block_number, lane, place.label(lane))
            try:
                results[lane] = (row.meaning(host, *(int(lanes[lane]) for lanes in given)) or 0) & (2**64 - 1)
            except HostFault as fault:
                raise fault.error(fault.message, where=fault.where or text.where) from None
        for bound in instruction.destinations:
            self.registers.write(bound, convert(results, U64, bound.type), lanes)

    def _execute(self, instruction: BoundInstruction, group: Mask) -> None:
        text = instruction.instruction
        self.machine.active = group & self._guard(instruction)
        if instruction.form.row.takes_whole_warp and 0 < self.machine.active.sum() < LANES:
            raise DivergentWarp(f"kernel {self.kernel.function.name}: only some lanes execute '{text.opcode}'")
        self.machine.memory.doing = f"kernel {self.kernel.function.name}, {text.opcode}, PTX line {text.line}"
        self.machine.memory.where = None if text.origin is None else text.origin.where
        self.counts.begin(instruction)
        sources = [self.registers.read(bound) for bound in instruction.sources]
        result = instruction.form.row.meaning(self.machine, instruction.form, *sources)
        for bound, value in zip(instruction.destinations, _as_sequence(result), strict=False):
            self.registers.write(bound, value, self.machine.active)


def _as_sequence(result: Lanes | Sequence[Lanes] | None) -> Sequence[Lanes]:
    if result is None:
        return ()
    return result if isinstance(result, Sequence) else (result,)
