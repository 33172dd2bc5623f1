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
    block = index if index < len(analysis.bound) else None
    if block is None or range(block, block + 1) not in analysis.pieces or block in analysis.links:
        return None
    following = analysis.graph.blocks[block].successors
    if len(following) != 1 or not block < following[0] < analysis.graph.exit:
        return None
    instructions = analysis.bound[block]
    if len(instructions) > MOST_INSTRUCTIONS or not all(map(_is_for_itself, instructions)):
        return None
    left = {name for instruction in instructions for name in instruction.defines} & analysis.liveness.live_out(block)
    return following[0] if left.isdisjoint(analysis.uniformity) else None


def _is_for_itself(instruction: BoundInstruction) -> bool:
    """Whether each lane executes it without regard to the others, or it is a jump that all of them take."""
    if instruction.effect.carrier is Carrier.BLOCK_END:
        return instruction.instruction.guard is None and not instruction.effect.waits
    needs_others = instruction.form.row.takes_whole_warp or instruction.membermask is not None
    return instruction.effect.carrier is Carrier.MEANING and not needs_others
