"""A traced call of a kernel: the plan that allocates its outputs and launches it, and how its results are returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from numpy.typing import NDArray

from triptych.core.dtypes import DType, dtype_of
from triptych.core.handles import Handle, contiguous_strides
from triptych.core.plan import Allocate, Constant, Launch, Plan, Program
from triptych.execution.memory import Memory
from triptych.languages.nki.tracing.dtypes import Dtype


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A tensor that a kernel returns: a new array of this shape and dtype, or one of its arguments."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    argument: int
    """Its place among the launch's arguments: behind the inputs where it is new."""
    returned: tuple[int, ...]
    """The shape that a new array is returned in."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A traced call: what to launch, on which inputs, and what to allocate for the outputs."""

    kernel: str
    program: Program
    grid: tuple[int, int, int]
    inputs: tuple[Handle, ...]
    names: tuple[str, ...]
    """What the author calls the inputs."""
    outputs: tuple[OutputSpec, ...]
    structure: type[tuple[object, ...]] | type[list[object]] | None
    """How the kernel returns several tensors; None where it returns one or nothing."""
    constants: tuple[tuple[str, NDArray[Any]], ...] = ()
    """Data that the kernel brings with it, by name: the last arguments of the launch."""
    arrays: tuple[object, ...] = field(default=(), repr=False, compare=False)
    """What the inputs are handles of: kept while the plan may still be run on them."""

    @property
    def new_outputs(self) -> tuple[OutputSpec, ...]:
        """The outputs that need memory, in the order of the launch's arguments."""
        places = {one.argument: one for one in self.outputs if one.argument >= len(self.inputs)}
        return tuple(places[at] for at in sorted(places))

    def plan(self, memory: Memory) -> Plan:
        """Allocates the new outputs, at addresses of `memory`, and launches; its outputs are what the kernel returns.

        What is allocated is undefined (NaN in floats) until the kernel stores to it, so that a missing store shows.
        """
        made = [_reserve(spec, memory) for spec in self.new_outputs]
        held = [_handle(array.shape, dtype_of(array.dtype), memory) for _, array in self.constants]
        arguments = (*self.inputs, *made, *held)
        names = (*self.names, *(spec.name for spec in self.new_outputs), *(name for name, _ in self.constants))
        launch = Launch(self.kernel, self.kernel, self.grid, (1, 1, 1), arguments, names=names)
        data = [
            Constant(handle.storage, array.tobytes()) for handle, (_, array) in zip(held, self.constants, strict=True)
        ]
        nodes = (*(Allocate(handle.storage) for handle in made), *data, launch)
        outputs = tuple(self._returned(spec, arguments[spec.argument]) for spec in self.outputs)
        return Plan(nodes, {self.kernel: self.program}, self.inputs, outputs)

    def _returned(self, spec: OutputSpec, held: Handle) -> Handle:
        if spec.argument < len(self.inputs) or held.shape == spec.returned:
            return held
        return replace(held, shape=spec.returned, strides=contiguous_strides(spec.returned, held.dtype))

    def results(self, made: Sequence[NDArray[Any]]) -> object:
        """What the kernel returns: the very arrays that it was given, and of the plan's outputs those that are new."""
        arrays, given = self.arrays, len(self.arrays)
        pairs = zip(self.outputs, made, strict=True)
        results = [arrays[spec.argument] if spec.argument < given else array for spec, array in pairs]
        if self.structure is not None:
            return self.structure(results)
        return results[0] if results else None


def _reserve(spec: OutputSpec, memory: Memory) -> Handle:
    return _handle(spec.shape, dtype_of(spec.dtype), memory)


def _handle(shape: tuple[int, ...], dtype: DType, memory: Memory) -> Handle:
    return Handle(memory.reserve(prod(shape) * dtype.bytes), dtype, shape, contiguous_strides(shape, dtype))
