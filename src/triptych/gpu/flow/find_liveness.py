"""Which registers hold a value that is still wanted, at the start and the end of each block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from triptych.gpu.flow.graph import FlowGraph
from triptych.gpu.syntax.ast import Instruction

Registers = Callable[[Instruction], Iterable[str]]
"""The names of the registers that an instruction reads, or writes."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """Sets of registers as bits of integers: bit i stands for `registers[i]`."""

    registers: tuple[str, ...]
    live_in_bits: tuple[int, ...]
    live_out_bits: tuple[int, ...]

    def live_in(self, block: int) -> frozenset[str]:
        """The registers whose value is wanted when the block starts."""
        return self.names(self.live_in_bits[block])

    def live_out(self, block: int) -> frozenset[str]:
        """The registers whose value is wanted when the block ends."""
        return self.names(self.live_out_bits[block])

    def names(self, bits: int) -> frozenset[str]:
        """The registers of a set of bits."""
        digits = f"{bits:b}"[::-1]
        found: list[str] = []
        place = digits.find("1")
        while place >= 0:
            found.append(self.registers[place])
            place = digits.find("1", place + 1)
        return frozenset(found)


def find_liveness(graph: FlowGraph, uses: Registers, defines: Registers) -> Liveness:
    """Liveness of each block by backward iteration.

    A guard's register is read whether `uses` names it or not. A guarded definition does not end the life of the
    register's old value, which stays in the lanes that are guarded off.
    """
    indices: dict[str, int] = {}
    read: list[int] = []
    written: list[int] = []
    for block in graph.blocks:
        block_reads, block_writes = _scan(block.instructions, uses, defines, indices)
        read.append(block_reads)
        written.append(block_writes)
    live_in, live_out = _iterate(graph, read, written)
    return Liveness(tuple(indices), tuple(live_in), tuple(live_out))


def _scan(
    instructions: Iterable[Instruction], uses: Registers, defines: Registers, indices: dict[str, int]
) -> tuple[int, int]:
    """What a block reads before it writes it, and what it surely writes."""
    read = written = 0
    for instruction in instructions:
        guard = instruction.guard
        if guard is not None:
            read |= (1 << indices.setdefault(guard.register.name, len(indices))) & ~written
        for name in uses(instruction):
            read |= (1 << indices.setdefault(name, len(indices))) & ~written
        for name in defines(instruction):
            bit = 1 << indices.setdefault(name, len(indices))
            if guard is None:
                written |= bit
    return read, written


def _iterate(graph: FlowGraph, read: list[int], written: list[int]) -> tuple[list[int], list[int]]:
    count = len(graph.blocks)
    live_in = [*read, 0]
    live_out = [0] * count
    waiting = list(range(count))
    is_waiting = [True] * count
    while waiting:
        block = waiting.pop()
        is_waiting[block] = False
        out = 0
        for successor in graph.successors[block]:
            out |= live_in[successor]
        live_out[block] = out
        wanted = read[block] | (out & ~written[block])
        if wanted != live_in[block]:
            live_in[block] = wanted
            for predecessor in graph.predecessors[block]:
                if not is_waiting[predecessor]:
                    is_waiting[predecessor] = True
                    waiting.append(predecessor)
    return live_in[:count], live_out
