"""Asides: short blocks that some lanes of a warp run while the others wait right behind, as of an `if` without `else`.

The converged form runs them itself. Without it each such branch would need the kernel's masked form, whose compilation
takes several times as long.
"""

from __future__ import annotations

from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Carrier
from triptych.gpu.lower.analysis.kernel import KernelAnalysis

MOST_INSTRUCTIONS = 32
"""Of an aside, which is emitted once more for each branch to it."""


def behind_aside(analysis: KernelAnalysis, index: int) -> int | None:
    """The block behind an aside; None where a block is none.

    Its lanes go nowhere but to that later block, need no other lane, and leave no register behind that is a scalar.
    """
    if index == analysis.graph.exit or range(index, index + 1) not in analysis.pieces or index in analysis.links:
        return None
    following = analysis.graph.blocks[index].successors
    if len(following) != 1 or not index < following[0] < analysis.graph.exit:
        return None
    instructions = analysis.bound[index]
    if len(instructions) > MOST_INSTRUCTIONS or not all(map(_is_for_itself, instructions)):
        return None
    left = {name for instruction in instructions for name in instruction.defines} & analysis.liveness.live_out(index)
    return following[0] if left.isdisjoint(analysis.uniformity) else None


def _is_for_itself(instruction: BoundInstruction) -> bool:
    """Whether each lane executes it without regard to the others, or it is a jump that all of them take."""
    if instruction.effect.carrier is Carrier.BLOCK_END:
        return instruction.instruction.guard is None and not instruction.effect.waits
    needs_others = instruction.form.row.takes_whole_warp or instruction.membermask is not None
    return instruction.effect.carrier is Carrier.MEANING and not needs_others
