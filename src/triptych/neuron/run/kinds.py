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
from triptych.neuron.run.strided import Layout, layout_of
from triptych.neuron.run.tally import Counts, counts


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A region among the operands of an instruction, as all of its kind have it."""

    name: str
    read: bool
    written: bool
    layout: Layout


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What executing and counting need to know of an instruction besides its places and its numbers."""

    row: Row
    shapes: Mapping[str, tuple[int, ...]]
    """Of the operands that are regions."""
    dtypes: Mapping[str, DType]
    gives_bits: bool
    """Whether what it gives is no number but bits."""
    counts: Counts
    """The counters that it adds to, and by how much."""
    uses: tuple[Use, ...]
    """Its regions, in the order of the row."""

    @classmethod
    def of(cls, instruction: Instruction, tensors: Sequence[Tensor], hardware: Hardware) -> Kind:
        """That of an instruction."""
        regions = {name: one for name, one in instruction.operands.items() if isinstance(one, Region)}
        row = find_row(instruction)
        dtypes = {name: tensors[one.tensor].dtype for name, one in regions.items()}
        uses = [
            Use(rule.name, rule.read, rule.written, layout_of(regions[rule.name].pattern, dtypes[rule.name].stored))
            for rule in row.operands
            if rule.name in regions
        ]
        return cls(
            row,
            {name: one.shape for name, one in regions.items()},
            dtypes,
            gives_bits(instruction.attributes),
            tuple(counts(instruction, tensors, hardware)),
            tuple(uses),
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
