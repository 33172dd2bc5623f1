"""Instructions of more free axes than the engines walk, as several: Beta 1's compiler splits what authors index so."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from triptych.neuron.isa import ROWS, Instruction, Region, Tensor, Verifier
from triptych.neuron.isa.row import Flow, Row, Surroundings
from triptych.neuron.isa.trace import Operand
from triptych.neuron.isa.verify import merged_axes

_ELEMENT_BY_ELEMENT = frozenset({Flow.ELEMENTWISE, Flow.MOVEMENT, Flow.CONSTANT})


def split_axes(instructions: Sequence[Instruction], surroundings: Surroundings) -> tuple[Instruction, ...]:
    """The instructions of a program, each walked along as many free axes as the engines can.

    Raises:
        NkiLimitError: for one that cannot be split: whose elements of dst are not made apart from each other.
    """
    tensors, limit = surroundings.tensors, surroundings.hardware.free_axes
    if not any(_axes(one, tensors) > limit for one in instructions):
        return tuple(instructions)
    verifier = Verifier(surroundings)
    found: list[Instruction] = []
    for one in instructions:
        pieces = [one]
        if _axes(one, tensors) > limit:
            pieces = list(_pieces(one, tensors, limit)) if _splits(one) else [one]
            for piece in pieces:
                verifier.verify(piece)
        found += pieces
    return tuple(found)


def works_by_elements(row: Row, given: Collection[str]) -> bool:
    """Whether an instruction with these operands makes dst alone, each element apart from the others."""
    written = [rule.name for rule in row.operands if rule.written and rule.name in given]
    return row.flow in _ELEMENT_BY_ELEMENT and "pattern" not in row.attributes and written == ["dst"]


def _regions(instruction: Instruction) -> Iterator[Region]:
    return (one for one in instruction.operands.values() if isinstance(one, Region))


def _axes(instruction: Instruction, tensors: Sequence[Tensor]) -> int:
    """The most free axes that an operand on the chip is walked along."""
    return max(
        [
            merged_axes(one.pattern[1:])
            for one in instruction.operands.values()
            if isinstance(one, Region) and len(one.pattern) > 2 and tensors[one.tensor].space.on_chip
        ],
        default=0,
    )


def _splits(instruction: Instruction) -> bool:
    """Whether each element of dst is made of its own elements of tiles of the same shape, or [P, 1]."""
    row, dst = ROWS[instruction.operation], instruction.operands.get("dst")
    if not works_by_elements(row, instruction.operands) or not isinstance(dst, Region):
        return False
    alike = all(one.shape == dst.shape or one.free == 1 for one in _regions(instruction))
    return alike and all(one.dynamic is None for one in _regions(instruction))


def _pieces(instruction: Instruction, tensors: Sequence[Tensor], limit: int) -> Iterator[Instruction]:
    """The instruction for each place along an axis, of the fewest elements of those that help most; and so on."""
    if _axes(instruction, tensors) <= limit:
        yield instruction
        return
    shape = instruction.region("dst").shape
    firsts = [(_at(instruction, at, 0), shape[at], at) for at in range(1, len(shape)) if shape[at] > 1]
    *_, axis = min((_axes(first, tensors), count, at) for first, count, at in firsts)
    for place in range(shape[axis]):
        yield from _pieces(_at(instruction, axis, place), tensors, limit)


def _at(instruction: Instruction, axis: int, place: int) -> Instruction:
    """The instruction for one place along an axis."""
    shape = instruction.region("dst").shape
    made: dict[str, Operand] = dict(instruction.operands)
    for name, one in instruction.operands.items():
        if isinstance(one, Region) and one.shape == shape:
            step, _ = one.pattern[axis]
            pattern = (*one.pattern[:axis], (step, 1), *one.pattern[axis + 1 :])
            made[name] = replace(one, offset=one.offset + step * place, pattern=pattern)
    return replace(instruction, operands=made)
