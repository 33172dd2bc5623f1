"""Registers that hold one value for all lanes of a warp, so that a scalar can stand for the vector.

A register may be uniform only if a single copy of it can serve every lane, wherever the lanes wait. So each of its
definitions must be a uniform operation on uniform operands under a uniform guard, and where lanes have parted at a
divergent branch, no lanes may write the register while others still want what it held for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from triptych.gpu.flow.find_liveness import Liveness, Registers, find_liveness
from triptych.gpu.flow.graph import FlowGraph
from triptych.gpu.syntax.ast import Instruction

MOST_BLOCKS_WALKED = 200_000
"""The blocks between branches and where their lanes meet, in all: beyond, every register counts as divergent."""
TOGETHER = -1
"""The class of the block where the lanes of a branch have come together again."""


def find_uniform_registers(
    graph: FlowGraph,
    uses: Registers,
    defines: Registers,
    spreads: Callable[[Instruction], bool],
    *,
    divergent: Iterable[str] = (),
    liveness: Liveness | None = None,
) -> frozenset[str]:
    """The defined registers that are the same in all lanes that run, at every point of the function.

    The graph must be ordered and reducible (`order_blocks`), and the blocks must run in that order: with two entries
    to a loop, lanes of different iterations could meet.

    Args:
        graph: the ordered graph.
        uses: the registers that an instruction reads; its guard is added.
        defines: the registers that an instruction writes.
        spreads: whether an instruction's results differ among lanes even where all its operands are uniform; for a
            terminator, whether lanes may part there.
        divergent: registers that differ among lanes from the start (`%tid.x`, the parameters of a device function).
        liveness: of the same graph, where it is there already.
    """
    lives = find_liveness(graph, uses, defines) if liveness is None else liveness
    return _Search(graph, uses, defines, spreads, lives).run(divergent)


class _Search:
    """Assumes that all is uniform and spreads divergence until nothing changes."""

    def __init__(
        self,
        graph: FlowGraph,
        uses: Registers,
        defines: Registers,
        spreads: Callable[[Instruction], bool],
        liveness: Liveness,
    ) -> None:
        self.graph = graph
        self.liveness = liveness
        self.walked = 0
        self.torn = 0
        self.results: list[tuple[str, ...]] = []
        self.readers: dict[str, list[int]] = {}
        self.parting: dict[int, int] = {}
        """The block that an instruction ends by choosing among several successors."""
        self.block_definitions: list[int] = []
        self.spreading: list[int] = []
        self.bits = {name: 1 << index for index, name in enumerate(liveness.registers)}
        for index, block in enumerate(graph.blocks):
            definitions = 0
            for instruction in block.instructions:
                definitions |= self._add(instruction, uses, defines, spreads)
            self.block_definitions.append(definitions)
            if block.instructions and len(graph.successors[index]) > 1:
                self.parting[len(self.results) - 1] = index

    def _add(
        self,
        instruction: Instruction,
        uses: Registers,
        defines: Registers,
        spreads: Callable[[Instruction], bool],
    ) -> int:
        number = len(self.results)
        results = tuple(defines(instruction))
        self.results.append(results)
        reads = set(uses(instruction))
        if instruction.guard is not None:
            reads.add(instruction.guard.register.name)
        for name in reads:
            self.readers.setdefault(name, []).append(number)
        if spreads(instruction):
            self.spreading.append(number)
        definitions = 0
        for name in results:
            definitions |= self.bits[name]
        return definitions

    def run(self, divergent: Iterable[str]) -> frozenset[str]:
        found: set[str] = set()
        waiting: list[str] = []
        for name in divergent:
            self._mark(name, found, waiting)
        done: set[int] = set()
        for number in self.spreading:
            self._diverge(number, done, found, waiting)
        while waiting:
            for number in self.readers.get(waiting.pop(), ()):
                self._diverge(number, done, found, waiting)
        return frozenset(name for results in self.results for name in results) - found

    def _mark(self, name: str, found: set[str], waiting: list[str]) -> None:
        if name not in found:
            found.add(name)
            waiting.append(name)

    def _diverge(self, number: int, done: set[int], found: set[str], waiting: list[str]) -> None:
        if number in done:
            return
        done.add(number)
        for name in self.results[number]:
            self._mark(name, found, waiting)
        block = self.parting.get(number)
        if block is not None:
            torn = self._find_torn(block) & ~self.torn
            self.torn |= torn
            for name in self.liveness.names(torn):
                self._mark(name, found, waiting)

    def _find_torn(self, branch: int) -> int:
        """The registers that some lanes of a divergent branch write while others may still want the old value."""
        if self.walked > MOST_BLOCKS_WALKED:
            return (1 << len(self.liveness.registers)) - 1
        classes = _classify_region(self.graph, branch)
        self.walked += len(classes)
        written: dict[int, int] = {}
        wanted: dict[int, int] = {}
        for block, member in classes.items():
            if member != TOGETHER:
                written[member] = written.get(member, 0) | self.block_definitions[block]
            wanted[member] = wanted.get(member, 0) | self.liveness.live_in_bits[block]
        once = twice = 0
        for bits in wanted.values():
            twice |= once & bits
            once |= bits
        torn = 0
        for member, bits in written.items():
            torn |= bits & (twice | (once & ~wanted[member]))
        return torn


def _classify_region(graph: FlowGraph, branch: int) -> dict[int, int]:
    """The blocks that lanes may run from a branch until they are together again, each with its class.

    Blocks of one class are run by lanes that stay together as far as this branch goes: the class is the successor
    through which they all came, or the block at which lanes from several successors met. The walk takes the blocks in
    the order in which they run: where only one is left, all lanes wait there. (The post-dominator is not always that
    block: some lanes may pass it an iteration before the others.)
    """
    classes = {successor: successor for successor in graph.successors[branch] if successor != graph.exit}
    waiting = sorted(classes)
    while len(waiting) > 1:
        block = heappop(waiting)
        for successor in graph.successors[block]:
            known = classes.get(successor)
            if successor == graph.exit or known in (successor, classes[block]):
                continue
            # Where the successor has a class already, lanes of two classes meet in it.
            classes[successor] = classes[block] if known is None else successor
            if successor not in waiting:
                heappush(waiting, successor)
    if waiting:
        classes[waiting[0]] = TOGETHER
    return classes
