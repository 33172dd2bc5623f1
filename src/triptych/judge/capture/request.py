"""What is to be captured: a candidate's source, the arrays that it gets and the outputs that it must give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from triptych.chips import Chip
from triptych.core.dtypes import DType, dtype_of
from triptych.operators.operator import Operator, Values

Constant = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array: dense, in C order."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def kind(self) -> DType:
        """The element type."""
        return dtype_of(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return prod(self.shape) * self.kind.bytes

    def __str__(self) -> str:
        """As `f32[3, 4]`."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Arguments:
    """How a format builds a call of the inputs, where that is not one after the other; a class of each such format."""

    modules: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    """Sources that the candidate may import, by name."""


@dataclass(frozen=True, slots=True)
class CaptureSize:
    """One call of a candidate."""

    inputs: tuple[ArraySpec, ...]
    """In the order in which the call takes them."""
    outputs: tuple[ArraySpec, ...]
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    """What the host may see beside shapes, for parameters of these names: the operator's constants, the size."""
    arguments: Arguments | None = None
    """The format's own; None: the inputs, one after the other."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A candidate, and all calls that are to be captured."""

    source: str
    file_name: str
    """As messages call the source."""
    sizes: tuple[CaptureSize, ...]
    format: str = "solution"
    """A row of `formats/table.py`."""
    chip: Chip | None = None
    """That host code sees, and whose target kernels are compiled for; each machine's default where there is none."""
    target: str | None = None
    """The compile target; the chip's own where it is not said."""
    torch: bool | None = None
    """Whether inputs are tensors of torch; None: where the source imports torch, or the format needs it."""


def size_of(operator: Operator, size: Values, dtype: DType) -> CaptureSize:
    """The call of a solution of an operator: its inputs and outputs, and as constants its own and the size's."""
    return CaptureSize(
        tuple(ArraySpec(one.name, one.element(dtype).name, one.shape(size)) for one in operator.inputs),
        tuple(ArraySpec(one.name, one.element(dtype).name, one.shape(size)) for one in operator.outputs),
        {**size, **operator.constants},
        operator.arguments(size) if operator.arguments is not None else None,
    )


def sizes_of(operator: Operator, sizes: Sequence[Values], dtype: DType) -> tuple[CaptureSize, ...]:
    """The calls of several sizes."""
    return tuple(size_of(operator, size, dtype) for size in sizes)
