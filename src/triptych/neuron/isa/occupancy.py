"""How much of SBUF and PSUM a program holds at each instruction, and whether that fits.

A tile lives from the first instruction that names it to the last. A kernel whose live tiles exceed the memory cannot be
compiled; one whose live tiles fit may still need a good allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from triptych.core.checks import COMPILER
from triptych.core.errors import NkiLimitError
from triptych.core.launches import Finding
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.loops import first_local, loop_ends
from triptych.neuron.isa.trace import Instruction, Operand, Region, Tensor


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The indices of the first and the last instruction that names each tensor of a program."""

    first: dict[int, int]
    last: dict[int, int]


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes of each partition that live tiles take, at which instruction, and which tensors those are."""

    bytes: int
    instruction: int
    live: tuple[int, ...]


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


Part = tuple[int, int]
"""A tensor, and one of its blocks."""


def _parts(
    program: Sequence[Instruction], tensors: Sequence[Tensor], space: Space
) -> tuple[dict[Part, int], dict[Part, int]]:
    """When each block of the tensors in a memory is named first and last."""
    first: dict[Part, int] = {}
    last: dict[Part, int] = {}
    for index, instruction in enumerate(program):
        for region in instruction.regions():
            if tensors[region.tensor].space is space:
                for part in parts_of(region, tensors):
                    first.setdefault(part, index)
                    last[part] = index
    for begin, end in loop_ends(program).items():
        local = first_local(program[begin])
        for part in last:
            if part[0] < local and begin <= last[part] <= end:
                first[part], last[part] = min(first[part], begin), end
    return first, last


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


def peak(program: Sequence[Instruction], tensors: Sequence[Tensor], space: Space) -> Peak:
    """The fullest moment of an on-chip memory."""
    first, last = _parts(program, tensors, space)
    arriving: dict[int, list[Part]] = {}
    for part, index in first.items():
        arriving.setdefault(index, []).append(part)
    live: dict[Part, int] = {}
    fullest = Peak(0, 0, ())
    for index in sorted(arriving):
        live = {part: size for part, size in live.items() if last[part] >= index}
        live |= {part: tensors[part[0]].bytes_per_partition // tensors[part[0]].blocks for part in arriving[index]}
        total = sum(live.values())
        if total > fullest.bytes:
            fullest = Peak(total, index, tuple(dict.fromkeys(tensor for tensor, _ in live)))
    return fullest


def _shared_bytes(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> Iterator[NkiLimitError]:
    """Tiles that the author placed over each other while both are in use."""
    lives = lifetimes(roots(tensors, program))
    placed = sorted((one for one in lives.first if tensors[one].address is not None), key=lives.first.__getitem__)
    for at, later in enumerate(placed):
        for earlier in placed[:at]:
            if lives.last[earlier] > lives.first[later] and _overlap(tensors[earlier], tensors[later]):
                yield NkiLimitError(
                    f"tensor `{tensors[later].name}` is placed over `{tensors[earlier].name}`, which is still in use: "
                    f"both have byte {max(tensors[one].address or 0 for one in (earlier, later))} of a partition of "
                    f"{tensors[later].space.value.upper()}",
                    where=program[lives.first[later]].where,
                    hint="choose addresses that are apart, or use the second when the first is no longer needed",
                )


def _overlap(first: Tensor, second: Tensor) -> bool:
    """Whether two placed tiles have a byte in common."""
    if first.space is not second.space:
        return False
    spans = [
        ((one.start, one.start + one.partitions), (one.address or 0, (one.address or 0) + one.bytes_per_partition))
        for one in (first, second)
    ]
    return all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in zip(*spans, strict=True))


def verify_capacity(
    program: Sequence[Instruction], tensors: Sequence[Tensor], hardware: Hardware, notices: list[Finding] | None
) -> None:
    """Refuse a program whose live tiles exceed SBUF or PSUM, or of which two share the bytes that they were placed at.

    Raises:
        NkiLimitError: naming the line, the bytes and the largest tiles.
    """
    for error in _shared_bytes(program, tensors):
        if notices is None:
            raise error
        notices.append(Finding.of(COMPILER, error.message, error.where))
    limits = {Space.SBUF: hardware.sbuf_bytes_per_partition, Space.PSUM: hardware.psum_bytes_per_partition}
    for space, limit in limits.items():
        fullest = peak(program, tensors, space)
        if fullest.bytes > limit:
            largest = sorted(fullest.live, key=lambda tensor: -tensors[tensor].bytes_per_partition)[:3]
            named = ", ".join(f"`{tensors[one].name}` ({tensors[one].bytes_per_partition} B)" for one in largest)
            error = NkiLimitError(
                f"{len(fullest.live)} live tiles take {fullest.bytes} bytes of each {space.value.upper()} partition; "
                f"the limit is {limit} on {hardware.target}; the largest are {named}",
                where=program[fullest.instruction].where,
                hint="use smaller tiles, or let fewer of them live at the same time",
            )
            if notices is None:
                raise error
            notices.append(Finding.of(COMPILER, error.message, error.where))
