"""One warp, instruction by instruction: each lane stands at a block, and the lanes at the lowest block run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from triptych.core.errors import BudgetExceeded, DeadlockError, KernelFault
from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.table import Effect
from triptych.gpu.oracle.counting import Counts
from triptych.gpu.oracle.machine import NumpyMachine
from triptych.gpu.oracle.operands import Registers
from triptych.gpu.oracle.program import Kernel
from triptych.gpu.oracle.values import LANES, Lanes, Mask


class Warp:
    """The state of a warp: registers, and for each lane the block where it stands."""

    def __init__(
        self, kernel: Kernel, registers: Registers, machine: NumpyMachine, counts: Counts, lanes: int, budget: int
    ) -> None:
        """`lanes` of the warp have a thread; a warp may run at most `budget` loop iterations."""
        self.kernel = kernel
        self.registers = registers
        self.machine = machine
        self.counts = counts
        self.exit = kernel.graph.exit
        self.at = np.where(np.arange(LANES) < lanes, 0, self.exit)
        self.waiting = np.zeros(LANES, np.bool_)
        self.fuel = budget

    def run(self) -> Iterator[None]:
        """Runs to the end; yields where all its lanes wait at a barrier of the block."""
        while bool((self.at != self.exit).any()):
            ready = (self.at != self.exit) & ~self.waiting
            if not ready.any():
                yield
                self.waiting[:] = False
                continue
            block = int(self.at[ready].min())
            self._run_block(block, ready & (self.at == block))

    # Blocks -----------------------------------------------------------------------------------------------------

    def _run_block(self, block: int, group: Mask) -> None:
        piece, bound = self.kernel.graph.blocks[block], self.kernel.bound[block]
        for instruction in bound:
            self._count(instruction, group)
            if instruction.membermask is not None:
                self._require_members(instruction, instruction.membermask, group)
            if instruction.effect.has_meaning:
                self._execute(instruction, group)
        if any(successor <= block for successor in piece.successors):
            self._burn()
        if not piece.targets:
            following = self.exit if piece.fall_through is None else piece.fall_through
            self.at[group] = following
            self.waiting |= group & (piece.waits and following != self.exit)
        elif bound[-1].effect is Effect.SWITCH:
            self._switch(bound[-1], group, piece.targets)
        else:
            self._branch(bound[-1], group, piece.targets[0], piece.fall_through)

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
        if taken.any() and others.any():
            self.counts.count_divergence()
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
            self.counts.count_divergence()

    # Instructions -----------------------------------------------------------------------------------------------

    def _guard(self, instruction: BoundInstruction) -> Mask:
        guard = instruction.instruction.guard
        if guard is None:
            return np.ones(LANES, np.bool_)
        value = self.registers.get(guard.register.name)
        return ~value if guard.negated else value

    def _count(self, instruction: BoundInstruction, group: Mask) -> None:
        active = group & self._guard(instruction)
        self.counts.count_instruction(instruction, int(group.sum()), int(active.sum()))

    def _require_members(self, instruction: BoundInstruction, membermask: Bound, group: Mask) -> None:
        """Lanes that the instruction names and that live, but stand elsewhere, would have to be waited for."""
        text = instruction.instruction
        members = int(self.registers.read(membermask)[group][0])
        elsewhere = (self.at != self.exit) & ~group
        if any(members >> int(lane) & 1 for lane in np.flatnonzero(elsewhere)):
            raise DeadlockError(
                f"{text.opcode} names lanes that stand elsewhere", where=text.origin and text.origin.where
            )

    def _execute(self, instruction: BoundInstruction, group: Mask) -> None:
        text = instruction.instruction
        self.machine.active = group & self._guard(instruction)
        self.machine.memory.doing = f"kernel {self.kernel.function.name}, {text.opcode}, PTX line {text.line}"
        self.machine.memory.where = None if text.origin is None else text.origin.where
        sources = [self.registers.read(bound) for bound in instruction.sources]
        result = instruction.form.row.meaning(self.machine, instruction.form, *sources)
        for bound, value in zip(instruction.destinations, _as_sequence(result), strict=False):
            self.registers.write(bound, value, self.machine.active)


def _as_sequence(result: Lanes | Sequence[Lanes] | None) -> Sequence[Lanes]:
    if result is None:
        return ()
    return result if isinstance(result, Sequence) else (result,)
