"""FlowGraph -> FlowGraph whose blocks are cut where lanes may have to wait for others of their warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from triptych.gpu.flow.find_liveness import Registers
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks
from triptych.gpu.isa.table import find_form
from triptych.gpu.syntax.ast import Instruction, Integer, Operand, Register


@dataclass(frozen=True, slots=True)
class SplitGraph:
    """A graph, and which of its blocks were one: executors that never wait in the middle run those in one go."""

    graph: FlowGraph
    pieces: tuple[range, ...]
    """The blocks that each block became, in order."""


def split_blocks(graph: FlowGraph, cuts: Callable[[Sequence[Instruction]], Sequence[int]]) -> SplitGraph:
    """Cuts blocks before the instructions whose positions `cuts` gives; the order of the blocks stays."""
    places = [(0, *(place for place in cuts(block.instructions) if place > 0)) for block in graph.blocks]
    starts = [0]
    for place in places:
        starts.append(starts[-1] + len(place))
    pieces = tuple(range(first, last) for first, last in pairwise(starts))
    blocks: list[Block] = []
    for block, place, numbers in zip(graph.blocks, places, pieces, strict=True):
        for number, first, end in zip(numbers, place, (*place[1:], len(block.instructions)), strict=True):
            piece = replace(block, index=number, instructions=block.instructions[first:end])
            if number != numbers[-1]:
                piece = replace(piece, targets=(), fall_through=number + 1)
            else:
                fall_through = None if block.fall_through is None else starts[block.fall_through]
                piece = replace(piece, targets=tuple(starts[t] for t in block.targets), fall_through=fall_through)
            blocks.append(piece if number == numbers[0] else replace(piece, labels=()))
    return SplitGraph(connect_blocks(blocks), pieces)


def split_at_syncs(graph: FlowGraph, defines: Registers) -> SplitGraph:
    """Cuts blocks before each instruction that lanes of a warp execute together, but where they are together already.

    Lanes that met at such an instruction do not part within a block: one that names the same lanes needs no cut.
    """

    def cuts(instructions: Sequence[Instruction]) -> list[int]:
        found: list[int] = []
        together: set[Operand] = set()
        for place, instruction in enumerate(instructions):
            form = find_form(instruction.mnemonic, instruction.modifiers)
            if form is not None and form.row.names_lanes and (instruction.operands or form.row.takes_whole_warp):
                named = instruction.operands[-1] if form.row.has_membermask else Integer(-1)
                if named not in together:
                    found.append(place)
                    together = {named}
            together -= {Register(name) for name in defines(instruction)}
        return found

    return split_blocks(graph, cuts)
