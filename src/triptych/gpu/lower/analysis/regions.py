"""Which loops parted lanes run with their registers at hand, out of the warp's frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.gpu.flow import find_loops
from triptych.gpu.lower.analysis.kernel import KernelAnalysis

MOST_BLOCKS = 24
"""Blocks of a loop: each has a way in and ways out of its own, and code has its price."""
MOST_REGISTERS = 64
"""Registers that are read or written in a loop, each of 32 lanes."""


@dataclass(frozen=True, slots=True)
class Region:
    """The blocks of a loop that belong to no loop inside it."""

    number: int
    blocks: frozenset[int]
    registers: frozenset[str]
    """Those with a place in the frame that are wanted somewhere in it, or written."""
    written: frozenset[str]


def find_regions(analysis: KernelAnalysis) -> Mapping[int, Region]:
    """The region of each block that is in one."""
    loops = find_loops(analysis.graph)
    innermost = {block: number for number, loop in enumerate(loops) for block in loop.body}
    found: dict[int, Region] = {}
    for number in range(len(loops)):
        blocks = frozenset(block for block, loop in innermost.items() if loop == number)
        written = {name for block in blocks for i in analysis.bound[block] for name in i.defines}
        wanted = {name for block in blocks for name in analysis.liveness.live_in(block)}
        slots = analysis.slots.keys()
        region = Region(number, blocks, frozenset((written | wanted) & slots), frozenset(written & slots))
        if len(blocks) <= MOST_BLOCKS and len(region.registers) <= MOST_REGISTERS:
            found.update(dict.fromkeys(blocks, region))
    return found
