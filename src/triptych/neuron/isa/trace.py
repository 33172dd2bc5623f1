"""The trace: the instructions that a kernel issues, over regions of declared tensors. No data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import prod

from triptych.core.dtypes import DType
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.core.values import value
from triptych.neuron.isa.hardware import Engine, Space

BETA1 = "beta1"
"""The generation of `neuronxcc.nki`."""
CURRENT = "current"
"""The generation of `import nki`."""
GENERATIONS = (BETA1, CURRENT)

Pattern = tuple[tuple[int, int], ...]
"""An access pattern, outermost axis first: (step in elements, count) an axis."""

AttributeValue = None | bool | int | float | str | tuple["AttributeValue", ...]


class SharedAttributes(dict[str, AttributeValue]):
    """The attributes of many instructions, which are one object where they are equal; never changed, never dropped."""

    __slots__ = ()


def kind_of(value: AttributeValue) -> object:
    """What tells values apart that are equal: their types, those of the parts of tuples, and the sign of a zero."""
    if isinstance(value, tuple):
        return tuple([kind_of(part) for part in value])
    return repr(value) if isinstance(value, float) else type(value)


@value
class Tensor:
    """A declared tensor.

    On chip it is `partitions` rows of `free` elements. In HBM `partitions` is 1 and `free` counts the elements from
    the lowest to the highest address; an argument's element (0, 0, …) lies `origin` elements behind the lowest.
    """

    name: str
    space: Space
    dtype: DType
    partitions: int
    free: int
    shape: tuple[int, ...]
    """As the author declared it; of an argument: what the bound array must have."""
    strides: tuple[int, ...] = ()
    """Elements, of an argument only; an axis of one element has stride 0."""
    origin: int = 0
    zeroed: bool = False
    """PSUM that starts an accumulation: reads as zero until a matmul has written it, at the cost of no instruction."""
    shared: bool = False
    """HBM that the kernel declares and all programs of the grid see; its contents start undefined."""
    where: SourceLocation | None = None
    """The line that declares it, of such HBM only."""
    alias: int | None = None
    """The tensor whose bytes it views in another dtype; its partitions are that one's."""
    address: int | None = None
    """The byte of each partition at which the author placed it; None where that is left to the compiler."""
    start: int = 0
    """The partition of its first row, 0 unless the author placed it elsewhere."""
    blocks: int = 1
    """The equal parts of a partition (Beta 1's block dimensions) that may lie apart, and live while they are used."""

    @property
    def size(self) -> int:
        """Elements."""
        return self.partitions * self.free

    @property
    def bytes_per_partition(self) -> int:
        """Bytes that it takes in each partition (in HBM: in all)."""
        return self.free * self.dtype.bytes


@lru_cache(4096)
def _counts(pattern: Pattern) -> tuple[int, ...]:
    return tuple(count for _, count in pattern)


@value
class Region:
    """Elements of a tensor: `offset` and steps count elements; on chip the first axis walks the partitions.

    Element e of partition p of an on-chip tensor has the offset p * free + e.
    """

    tensor: int
    offset: int
    pattern: Pattern
    dynamic: Dynamic | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The counts of all axes."""
        return _counts(self.pattern)

    @property
    def size(self) -> int:
        """Elements visited."""
        return prod(count for _, count in self.pattern)

    @property
    def partitions(self) -> int:
        """The count of the first axis."""
        return self.pattern[0][1] if self.pattern else 1

    @property
    def free(self) -> int:
        """Elements visited in each partition."""
        return prod(count for _, count in self.pattern[1:])

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest offset visited."""
        low = high = self.offset
        for step, count in self.pattern:
            reach = step * (count - 1)
            low, high = (low + reach, high) if reach < 0 else (low, high + reach)
        return low, high


class Indexing(Enum):
    """How indices that are known only when the trace runs choose the elements of a region."""

    SCALAR = "scalar"
    """One index moves the whole region."""
    ROWS = "rows"
    """An index for each place along the first axis, in the place of that axis' own step."""
    COLUMNS = "columns"
    """Indices into the free dimension, for all partitions of a group: number i of a group lies in its partition i
    modulo the group's size, in column i divided by it."""


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Where the indices of a region lie, and what they mean."""

    kind: Indexing
    index: Region
    step: int
    """Elements of the region's tensor that an index of 1 stands for."""
    extent: int
    """Indices are 0 to extent - 1."""
    skip: bool = False
    """Whether what an index outside of that names is left out; else it is a fault."""


Operand = Region | float


@value
class Instruction:
    """One engine instruction: operands by the row's names, absent optional ones left out."""

    operation: str
    engine: Engine
    operands: Mapping[str, Operand]
    attributes: Mapping[str, AttributeValue]
    where: SourceLocation

    def region(self, name: str) -> Region:
        """The operand `name`, which must be a region (verification makes sure of it)."""
        operand = self.operands[name]
        assert isinstance(operand, Region), name
        return operand

    def regions(self) -> Iterator[Region]:
        """All regions that it reads or writes, those of dynamic indices too."""
        for operand in self.operands.values():
            if isinstance(operand, Region):
                yield operand
                if operand.dynamic is not None:
                    yield operand.dynamic.index


@dataclass(frozen=True, slots=True)
class Trace:
    """What a kernel does on a NeuronCore: one list of instructions a program of the grid."""

    kernel: str
    target: str
    generation: str
    """BETA1 or CURRENT: whose compiler's rules hold."""
    grid: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    arguments: tuple[int, ...]
    """The tensors that the launch's arguments are bound to, in their order."""
    outputs: tuple[int, ...]
    """The arguments that the kernel returns."""
    programs: tuple[tuple[Instruction, ...], ...]
    notices: tuple[Finding, ...] = ()
    lenient: bool = False
    """Whether what AWS's compiler refuses and its simulator does not was a finding."""
