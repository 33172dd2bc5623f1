"""How much of SBUF and PSUM a program holds at each instruction, and whether that fits.

A tile lives from the first instruction that names it to the last. A kernel whose live tiles exceed the memory cannot be
compiled; one whose live tiles fit may still need a good allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triptych.core.errors import NkiLimitError
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.trace import Instruction, Region, Tensor


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
        for operand in instruction.operands.values():
            if isinstance(operand, Region):
                first.setdefault(operand.tensor, index)
                last[operand.tensor] = index
    return Lifetimes(first, last)


def peak(program: Sequence[Instruction], tensors: Sequence[Tensor], space: Space) -> Peak:
    """The fullest moment of an on-chip memory."""
    lives = lifetimes(program)
    arriving: dict[int, list[int]] = {}
    for tensor, index in lives.first.items():
        if tensors[tensor].space is space:
            arriving.setdefault(index, []).append(tensor)
    live: dict[int, int] = {}
    fullest = Peak(0, 0, ())
    for index in sorted(arriving):
        live = {tensor: size for tensor, size in live.items() if lives.last[tensor] >= index}
        live |= {tensor: tensors[tensor].bytes_per_partition for tensor in arriving[index]}
        total = sum(live.values())
        if total > fullest.bytes:
            fullest = Peak(total, index, tuple(live))
    return fullest


def verify_capacity(program: Sequence[Instruction], tensors: Sequence[Tensor], hardware: Hardware) -> None:
    """Refuse a program whose live tiles exceed SBUF or PSUM.

    Raises:
        NkiLimitError: naming the line, the bytes and the largest tiles.
    """
    limits = {Space.SBUF: hardware.sbuf_bytes_per_partition, Space.PSUM: hardware.psum_bytes_per_partition}
    for space, limit in limits.items():
        fullest = peak(program, tensors, space)
        if fullest.bytes > limit:
            largest = sorted(fullest.live, key=lambda tensor: -tensors[tensor].bytes_per_partition)[:3]
            named = ", ".join(f"`{tensors[one].name}` ({tensors[one].bytes_per_partition} B)" for one in largest)
            raise NkiLimitError(
                f"{len(fullest.live)} live tiles take {fullest.bytes} bytes of each {space.value.upper()} partition; "
                f"the limit is {limit} on {hardware.target}; the largest are {named}",
                where=program[fullest.instruction].where,
                hint="use smaller tiles, or let fewer of them live at the same time",
            )
