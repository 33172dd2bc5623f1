"""An instruction with what its cost depends on: sizes, dtypes, memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.row import Row
from triptych.neuron.isa.trace import Instruction, Region, Tensor


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction, with what its cost depends on."""

    instruction: Instruction
    row: Row
    tensors: Sequence[Tensor]

    def regions(self) -> Iterator[Region]:
        """The regions of its operands, those of an engine's own registers left out."""
        for operand in self.instruction.operands.values():
            if isinstance(operand, Region) and self.tensors[operand.tensor].space is not Space.ENGINE:
                yield operand

    @property
    def free(self) -> int:
        """N: the most elements of a partition that an operand has."""
        return max((one.free for one in self.regions()), default=1)

    def columns(self, name: str) -> int:
        """Elements of a partition of a matmul's operand, those of its second row in double_row mode not counted."""
        return self.instruction.region(name).free // (2 if self.instruction.attributes.get("double_row") else 1)

    def dtypes(self, *names: str) -> frozenset[str]:
        """The dtypes of the named operands; with no name, of all regions."""
        chosen = [self.instruction.region(name) for name in names] if names else self.regions()
        return frozenset(self.tensors[one.tensor].dtype.name for one in chosen)

    def tiles(self) -> Iterator[Region]:
        """The regions of more than one element a partition: what streams through an engine."""
        return (one for one in self.regions() if one.free > 1)

    def streams(self) -> frozenset[str]:
        """Their dtypes."""
        return frozenset(self.tensors[one.tensor].dtype.name for one in self.tiles())

    def spaces(self) -> frozenset[Space]:
        """Where those lie."""
        return frozenset(self.tensors[one.tensor].space for one in self.tiles())

    @property
    def contiguous(self) -> bool:
        """Whether each of them is one run in every partition."""
        return all(_run(one) == one.free for one in self.tiles())


def _run(region: Region) -> int:
    """Elements of a partition that lie side by side from the first on."""
    run = 1
    for step, count in reversed(region.pattern[1:]):
        if count > 1 and step != run:
            return run
        run *= count
    return run
