"""Kinds of instructions: what is the same of those that differ in where their tiles lie alone, found once a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.core.dtypes import DType
from triptych.neuron.isa.alu import gives_bits
from triptych.neuron.isa.hardware import Hardware
from triptych.neuron.isa.row import Row
from triptych.neuron.isa.trace import Instruction, Region, Tensor
from triptych.neuron.isa.verify import find_row
from triptych.neuron.run.tally import counts


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What executing and counting need to know of an instruction besides its places and its numbers."""

    row: Row
    shapes: Mapping[str, tuple[int, ...]]
    """Of the operands that are regions."""
    dtypes: Mapping[str, DType]
    gives_bits: bool
    """Whether what it gives is no number but bits."""
    counts: tuple[tuple[str, int], ...]
    """The counters that it adds to, and by how much."""

    @classmethod
    def of(cls, instruction: Instruction, tensors: Sequence[Tensor], hardware: Hardware) -> Kind:
        """That of an instruction."""
        regions = {name: one for name, one in instruction.operands.items() if isinstance(one, Region)}
        return cls(
            find_row(instruction),
            {name: one.shape for name, one in regions.items()},
            {name: tensors[one.tensor].dtype for name, one in regions.items()},
            gives_bits(instruction.attributes),
            tuple(counts(instruction, tensors, hardware)),
        )


def kinds_of(program: Sequence[Instruction], tensors: Sequence[Tensor], hardware: Hardware) -> tuple[Kind, ...]:
    """The kind of each instruction; those of one kind have one object."""
    known: dict[object, Kind] = {}
    found: list[Kind] = []
    for instruction in program:
        key = _key(instruction, tensors)
        kind = known.get(key)
        if kind is None:
            kind = known[key] = Kind.of(instruction, tensors, hardware)
        found.append(kind)
    return tuple(found)


def _key(instruction: Instruction, tensors: Sequence[Tensor]) -> object:
    """All that the kind of an instruction depends on."""
    attributes = repr(instruction.attributes)  # 1, 1.0 and True are written differently, and so are 0.0 and -0.0
    found: list[object] = [instruction.operation, id(instruction.engine), attributes]
    for name, operand in instruction.operands.items():
        found.append(name)
        if isinstance(operand, Region):
            tensor = tensors[operand.tensor]
            found += (operand.pattern, tensor.dtype.name, id(tensor.space))
    return tuple(found)
