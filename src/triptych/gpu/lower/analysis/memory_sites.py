"""The memory sites of a kernel: each access of its instructions, once for each space that it may reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triptych.core.memory_access import Access
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.spaces import Space


@dataclass(frozen=True, slots=True)
class MemorySite:
    """A memory instruction's counters: what it does and in which space."""

    instruction: BoundInstruction
    block: int
    space: Space
    kind: Access

    @property
    def bytes(self) -> int:
        """Bytes that one lane moves in a request."""
        return self.instruction.form.lane_bytes


def find_sites(bound: Sequence[Sequence[BoundInstruction]]) -> tuple[tuple[MemorySite, ...], dict[int, int]]:
    """The sites of a kernel's blocks in order, and the first one of each instruction by its identity."""
    sites: list[MemorySite] = []
    first: dict[int, int] = {}
    for index, block in enumerate(bound):
        for instruction in block:
            accesses = instruction.form.accesses
            if accesses:
                first[id(instruction)] = len(sites)
                sites += (MemorySite(instruction, index, one, kind) for space, kind in accesses for one in space.sites)
    return tuple(sites), first
