"""How much of SBUF and PSUM a program holds at each instruction.

A tile lives from the first instruction that names it to the last. Tiles of SBUF that may begin at other partitions than
the first lie beside each other: two of 33 to 64 partitions, or four of 32, in the same bytes. AWS's own kernels need
it: the cross entropy of its NKI library has two tiles of 64 partitions with 131 070 bytes in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triptych.neuron.isa.hardware import Space, start_partitions
from triptych.neuron.isa.loops import first_local, loop_ends
from triptych.neuron.isa.trace import Instruction, Operand, Region, Tensor

Part = tuple[int, int]
"""A tensor, and one of its blocks."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The indices of the first and the last instruction that names each tensor of a program."""

    first: dict[int, int]
    last: dict[int, int]


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest moment of a memory: at which instruction it is, and which tiles live then."""

    bytes: int
    """Of each partition, where the tiles lie as closely as their partitions allow."""
    instruction: int
    live: tuple[Part, ...]


def lifetimes(program: Sequence[Instruction]) -> Lifetimes:
    """When each tensor lives."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, instruction in enumerate(program):
        for region in instruction.regions():
            first.setdefault(region.tensor, index)
            last[region.tensor] = index
    for begin, end in loop_ends(program).items():
        local = first_local(program[begin])
        for tensor in last:
            if tensor < local and begin <= last[tensor] <= end:
                last[tensor] = end
                first[tensor] = min(first[tensor], begin)
    return Lifetimes(first, last)


def roots(tensors: Sequence[Tensor], program: Sequence[Instruction]) -> Sequence[Instruction]:
    """The program with each view in another dtype named by the tensor whose bytes it views."""
    if all(one.alias is None for one in tensors):
        return program
    return [replace(one, operands={n: _rooted(o, tensors) for n, o in one.operands.items()}) for one in program]


def _rooted(operand: Operand, tensors: Sequence[Tensor]) -> Operand:
    if not isinstance(operand, Region):
        return operand
    alias, dynamic = tensors[operand.tensor].alias, operand.dynamic
    index = None if dynamic is None else _rooted(dynamic.index, tensors)
    moved = dynamic if dynamic is None or not isinstance(index, Region) else replace(dynamic, index=index)
    return replace(operand, tensor=operand.tensor if alias is None else alias, dynamic=moved)


@dataclass(frozen=True, slots=True)
class Tiles:
    """When each tile of a memory is named first and last."""

    first: dict[Part, int]
    last: dict[Part, int]


def tiles_of(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> dict[Space, Tiles]:
    """When each block of the tensors in SBUF and PSUM is named first and last."""
    found = {space: Tiles({}, {}) for space in (Space.SBUF, Space.PSUM)}
    by_space = {id(space): tiles for space, tiles in found.items()}
    of_tensor = [by_space.get(id(one.space)) for one in tensors]
    whole = [[(at, 0)] if one.alias is None and one.blocks == 1 else None for at, one in enumerate(tensors)]
    for index, instruction in enumerate(program):
        for region in instruction.operands.values():  # as `regions` does: there are many
            if type(region) is not Region:
                continue
            dynamic = region.dynamic
            for one in (region,) if dynamic is None else (region, dynamic.index):
                tiles = of_tensor[one.tensor]
                if tiles is not None:
                    for part in whole[one.tensor] or parts_of(one, tensors):
                        if part not in tiles.last:
                            tiles.first[part] = index
                        tiles.last[part] = index
    for begin, end in loop_ends(program).items():
        local = first_local(program[begin])
        for tiles in found.values():
            for part in tiles.last:
                if part[0] < local and begin <= tiles.last[part] <= end:
                    tiles.first[part], tiles.last[part] = min(tiles.first[part], begin), end
    return found


def parts_of(region: Region, tensors: Sequence[Tensor]) -> list[Part]:
    """The blocks that a region lies in; all of them, where it is a view in another dtype or moved by an index."""
    tensor = tensors[region.tensor]
    root = region.tensor if tensor.alias is None else tensor.alias
    count = tensors[root].blocks
    if count == 1:
        return [(root, 0)]
    size = tensor.free // count
    low, high = Region(root, region.offset % tensor.free, region.pattern[1:]).bounds
    if tensor.alias is not None or region.dynamic is not None or low < 0 or high >= tensor.free:
        return [(root, block) for block in range(count)]
    return [(root, block) for block in range(low // size, high // size + 1)]


def peak_of(tiles: Tiles, tensors: Sequence[Tensor]) -> Peak:
    """The first of the fullest moments: tiles come where they are named first, and go behind where they are last."""
    arriving: defaultdict[int, int] = defaultdict(int)
    leaving: defaultdict[int, int] = defaultdict(int)
    for part, index in tiles.first.items():
        size = strip_bytes(tensors[part[0]], block_bytes(tensors[part[0]]))
        arriving[index] += size
        leaving[tiles.last[part]] += size
    total, most, at = 0, 0, 0
    left = sorted(leaving, reverse=True)
    for index in sorted(arriving):
        while left and left[-1] < index:
            total -= leaving[left.pop()]
        total += arriving[index]
        if total > most:
            most, at = total, index
    largest = max(tiles.first, key=lambda part: block_bytes(tensors[part[0]]), default=None)
    alone = 0 if largest is None else block_bytes(tensors[largest[0]])
    if largest is not None and STRIPS * alone > most:  # a tile is not spread over quadrants that it has no rows in
        most, at = STRIPS * alone, tiles.first[largest]
    live = (part for part, index in tiles.first.items() if index <= at <= tiles.last[part])
    return Peak(-(-most // STRIPS), at, tuple(live))


def block_bytes(tensor: Tensor) -> int:
    """Bytes of each partition that one of its tiles takes."""
    return tensor.bytes_per_partition // tensor.blocks


STRIPS = 4
"""SBUF's quadrants of 32 partitions."""


def strip_bytes(tensor: Tensor, size: int) -> int:
    """What a tile with `size` bytes in each of its tensor's partitions takes, in bytes of one quadrant's partitions."""
    beside = len(start_partitions(tensor.partitions)) if tensor.space is Space.SBUF else 1
    return size * STRIPS // beside
