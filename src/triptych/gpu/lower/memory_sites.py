"""The memory sites of a kernel: each instruction that reaches memory, once for each space that it may reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triptych.core.errors import Access
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.table import Effect
from triptych.gpu.lower.memory import GENERIC_SITES

_KINDS: Mapping[Effect, Access] = {
    Effect.LOAD: "load", Effect.LOAD_MATRIX: "load", Effect.STORE: "store", Effect.ATOMIC: "atomic",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemorySite:
    """A memory instruction's counters: what it does and in which space."""

    instruction: BoundInstruction
    block: int
    space: str
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
            found = list(_sites_of(instruction, index))
            if found:
                first[id(instruction)] = len(sites)
                sites += found
    return tuple(sites), first


def _sites_of(instruction: BoundInstruction, block: int) -> Iterator[MemorySite]:
    if instruction.effect is Effect.COPY:
        yield MemorySite(instruction, block, "global", "load")
        yield MemorySite(instruction, block, "shared", "store")
    elif instruction.effect in _KINDS:
        space = instruction.form.space
        spaces = GENERIC_SITES if space == "generic" else ("global" if space == "const" else space,)
        for one in spaces:
            yield MemorySite(instruction, block, one, _KINDS[instruction.effect])
