"""Room on the chip: tiles take it in the order of the program, and give it back when all that uses them has ended.

This stands for the compiler's allocator: a tile that does not fit waits until enough of those before it are dead, so
that how far loads run ahead is bounded by SBUF and PSUM. Fragmentation is not modelled. What the author placed has its
addresses: there dependencies say who waits (`footprints.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.occupancy import Part, parts_of
from triptych.neuron.isa.trace import Instruction, Tensor


@dataclass(frozen=True, slots=True)
class Room:
    """A memory that cannot hold all tiles of a program at once."""

    space: Space
    bytes: int
    """Of each partition, that tiles can take."""
    sizes: tuple[int, ...]
    """Bytes of each partition, by tile."""
    used_by: tuple[tuple[int, ...], ...]
    """The tiles that each instruction uses."""
    wants: tuple[tuple[int, int], ...]
    """(step, bytes) of the steps that are the first to use tiles, in their order."""
    uses: tuple[int, ...]
    """Steps that use each tile."""


def rooms_of(
    program: Sequence[Instruction], steps: Sequence[int], tensors: Sequence[Tensor], capacities: dict[Space, int]
) -> Iterator[Room]:
    """The memories that are too small for all tiles of a program at once.

    Args:
        program: the instructions.
        steps: the index of the instruction that each step executes.
        tensors: of the trace.
        capacities: bytes of each partition.
    """
    for space, capacity in capacities.items():
        room = capacity - _placed(tensors, space)
        used_by, sizes = _tiles(program, tensors, space)
        if sum(sizes) > room:
            yield Room(space, room, sizes, used_by, *_in_order(steps, used_by, sizes))


def _tiles(
    program: Sequence[Instruction], tensors: Sequence[Tensor], space: Space
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The tiles in a memory that each instruction uses, and the bytes of each tile; not those with an address."""
    numbers: dict[Part, int] = {}
    used_by: list[tuple[int, ...]] = []
    roots = [one if one.alias is None else tensors[one.alias] for one in tensors]
    meant = [one.space is space and one.address is None for one in roots]
    whole = [one.blocks == 1 and one.alias is None for one in tensors]
    for instruction in program:
        used: list[int] = []
        for region in instruction.regions():
            at = region.tensor
            if meant[at]:
                parts = ((at, 0),) if whole[at] else parts_of(region, tensors)
                used += [numbers.setdefault(part, len(numbers)) for part in parts]
        used_by.append(tuple(dict.fromkeys(used)) if len(used) > 1 else tuple(used))
    return tuple(used_by), tuple(tensors[root].bytes_per_partition // tensors[root].blocks for root, _ in numbers)


def _placed(tensors: Sequence[Tensor], space: Space) -> int:
    """Bytes up to the end of what the author placed."""
    placed = (one for one in tensors if one.space is space and one.address is not None)
    return max(((one.address or 0) + one.bytes_per_partition for one in placed), default=0)


def _in_order(
    steps: Sequence[int], used_by: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    wants: list[tuple[int, int]] = []
    uses = [0] * len(sizes)
    for step, at in enumerate(steps):
        wanted = 0
        for tile in used_by[at]:
            wanted += 0 if uses[tile] else sizes[tile]
            uses[tile] += 1
        if wanted:
            wants.append((step, wanted))
    return tuple(wants), tuple(uses)
