"""The control flow graph of a function: what `build_blocks` makes and the other passes read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triptych.gpu.isa.calls import is_host_call
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.table import effect_of
from triptych.gpu.syntax.ast import Instruction


def instruction_effect(instruction: Instruction) -> Effect:
    """What an instruction does, whether its operands fit or not.

    A call of the host's functions leaves the block where it is. A `ret` that names a label goes there: that is how a
    function returns once it is a part of a kernel.
    """
    effect = effect_of(instruction.mnemonic, instruction.modifiers)
    if effect is Effect.CALL and is_host_call(instruction):
        return Effect.HOST_CALL
    return Effect.BRANCH if effect is Effect.RETURN and instruction.operands else effect


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other. An empty block is a latch, or the end of a function.

    `targets` are the blocks that the last instruction names: one for `bra`, one for each label of `brx.idx` in the
    order of its list (a block may come twice); the virtual exit for `ret` and `exit`. `fall_through` is the block that
    follows where the last instruction does not leave, None where it always does; it is the virtual exit only for an
    empty block at the end of a function.
    """

    index: int
    labels: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    targets: tuple[int, ...]
    fall_through: int | None

    @property
    def successors(self) -> tuple[int, ...]:
        """The blocks that may run next, without repetition: the targets, then the fall-through."""
        after = self.targets if self.fall_through is None else (*self.targets, self.fall_through)
        return tuple(dict.fromkeys(after))

    @property
    def terminator(self) -> Instruction | None:
        """The last instruction where it chooses the next block, None where the block only falls through."""
        return self.instructions[-1] if self.targets else None

    @property
    def waits(self) -> bool:
        """Whether the threads of the launch's block wait for each other at its end."""
        return bool(self.instructions) and instruction_effect(self.instructions[-1]).waits

    @property
    def only_ends(self) -> bool:
        """Whether it does nothing but end its lanes."""
        if len(self.instructions) != 1 or self.fall_through is not None:
            return False
        return instruction_effect(self.instructions[0]) in (Effect.RETURN, Effect.END)


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Blocks numbered from 0, the entry. `exit` is the number of the virtual exit: that of no block."""

    blocks: tuple[Block, ...]
    successors: tuple[tuple[int, ...], ...]
    """The successors of each block, then (empty) of the exit."""
    predecessors: tuple[tuple[int, ...], ...]
    """The predecessors of each block, then of the exit."""

    @property
    def exit(self) -> int:
        """The number of the virtual exit."""
        return len(self.blocks)


def connect_blocks(blocks: Iterable[Block]) -> FlowGraph:
    """The graph of blocks whose `targets` and `fall_through` are set."""
    numbered = tuple(blocks)
    successors = (*(block.successors for block in numbered), ())
    predecessors: list[list[int]] = [[] for _ in range(len(numbered) + 1)]
    for index, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(index)
    return FlowGraph(numbered, successors, tuple(map(tuple, predecessors)))
