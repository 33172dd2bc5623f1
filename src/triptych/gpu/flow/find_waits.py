"""Loops that may wait for other threads: whether they go on depends on memory that others can change meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triptych.gpu.flow.find_dominators import find_tree
from triptych.gpu.flow.find_liveness import Registers
from triptych.gpu.flow.find_loops import Edge
from triptych.gpu.flow.graph import FlowGraph, instruction_effect
from triptych.gpu.isa.effects import Observation
from triptych.gpu.isa.table import find_form
from triptych.gpu.syntax.ast import Instruction


def find_waits(graph: FlowGraph, uses: Registers, defines: Registers) -> frozenset[Edge]:
    """The back edges of loops that may wait.

    Such a loop has an exit that depends, by data or by control, on what a load or an atomic operation in it gives. A
    load counts if it is strong or if the loop orders accesses (compilers move other loads of one place out of a loop);
    else, if the loop writes nothing and the address is the same in every iteration.

    Args:
        graph: the ordered graph.
        uses: the registers that an instruction reads.
        defines: the registers that an instruction writes.
    """
    seen = {b.index for b in graph.blocks if any(_observes(i) is not Observation.NOTHING for i in b.instructions)}
    if not seen:
        return frozenset()
    found: set[Edge] = set()
    for block in graph.blocks:
        for successor in block.successors:
            if successor <= block.index:
                cycle = Cycle(graph, (block.index, successor), uses, defines)
                if not seen.isdisjoint(cycle.body) and cycle.waits():
                    found.add((block.index, successor))
    return frozenset(found)


def _observes(instruction: Instruction) -> Observation:
    """What its results tell of what other threads do."""
    form = find_form(instruction.mnemonic, instruction.modifiers)
    if form is None:
        return Observation.NOTHING
    if form.observes is Observation.WEAK and form.space.passes_results and not instruction.added:
        return Observation.STRONG  # the result of a function: it may have looked for itself
    return form.observes


def find_body(graph: FlowGraph, edge: Edge) -> set[int]:
    """The blocks from which a back edge is reached without passing its target, and that."""
    source, header = edge
    body = {header, source}
    stack = [source] if source != header else []
    while stack:
        for before in graph.predecessors[stack.pop()]:
            if before not in body:
                body.add(before)
                stack.append(before)
    return body


class Cycle:
    """The blocks from which a back edge is reached without passing its target."""

    def __init__(self, graph: FlowGraph, edge: Edge, uses: Registers, defines: Registers) -> None:
        """Finds the blocks; `uses` and `defines` say what an instruction reads and writes."""
        self.graph = graph
        self.uses = uses
        self.defines = defines
        self.header = edge[1]
        self.body = find_body(graph, edge)
        self.exits = {b for b in self.body if any(s not in self.body for s in graph.successors[b])}

    def waits(self) -> bool:
        """Whether an exit depends on what the loop observes."""
        instructions = [i for block in self.body for i in self.graph.blocks[block].instructions]
        effects = {instruction_effect(i) for i in instructions}
        changed = {name for i in instructions for name in self.defines(i)}
        orders, writes = any(e.orders for e in effects), any(e.writes for e in effects)
        tainted: set[str] = set()
        for i in instructions:
            seen = _observes(i)
            if seen is Observation.WEAK and not orders and (writes or changed.intersection(self.uses(i))):
                continue
            if seen is not Observation.NOTHING:
                tainted.update(self.defines(i))
        return bool(tainted) and self._reaches_an_exit(tainted, instructions)

    def _reaches_an_exit(self, tainted: set[str], instructions: Sequence[Instruction]) -> bool:
        controlled: set[int] = set()
        meetings = self.find_meetings()
        branches = [b for b in self.body if len(self.graph.successors[b]) > 1]
        size = -1
        while size != len(tainted) + len(controlled):
            size = len(tainted) + len(controlled)
            for i in instructions:
                if not tainted.isdisjoint(self.uses(i)):
                    tainted.update(self.defines(i))
            for branch in branches:
                if not tainted.isdisjoint(self.uses(self.graph.blocks[branch].instructions[-1])):
                    if branch in self.exits:
                        return True
                    controlled |= self.controlled_by(branch, meetings[branch])
            for block in controlled:
                for i in self.graph.blocks[block].instructions:
                    tainted.update(self.defines(i))
        return not self.exits.isdisjoint(controlled)

    def find_meetings(self) -> Mapping[int, int | None]:
        """The block that all ways from each block through the rest of an iteration meet at, None: none does."""
        blocks = sorted(self.body)
        places = {block: place for place, block in enumerate(blocks) if block != self.header}
        end = len(blocks)
        ways = [sorted({places.get(s, end) for s in self.graph.successors[block]}) for block in blocks]
        before: list[list[int]] = [[] for _ in range(end + 1)]
        for place, following in enumerate(ways):
            for successor in following:
                before[successor].append(place)
        tree = find_tree(before, [*ways, []], end)
        return {block: blocks[tree[place]] if 0 <= tree[place] < end else None for place, block in enumerate(blocks)}

    def controlled_by(self, branch: int, meeting: int | None) -> set[int]:
        """The loop's blocks between a branch and where its ways meet again."""
        found: set[int] = set()
        stack = list(self.graph.successors[branch])
        while stack:
            block = stack.pop()
            if block in self.body and block not in found and block not in (meeting, self.header):
                found.add(block)
                stack += self.graph.successors[block]
        return found
