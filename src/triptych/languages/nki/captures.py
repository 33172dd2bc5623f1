"""A traced call of a kernel, and its launch on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import Handle
from triptych.core.plan import Launch, Program
from triptych.execution.memory import memory
from triptych.execution.run import run_launch
from triptych.languages.nki.dtypes import Dtype

UNDEFINED_BYTE = 0xFF
"""What an output holds before the kernel runs: NaN in floats, so that a missing store shows."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A tensor that a kernel returns: a new array of this shape and dtype, or one of its arguments."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    argument: int
    """Its place among the launch's arguments: behind the inputs where it is new."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A traced call: what to launch, on which inputs, and what to allocate for the outputs."""

    kernel: str
    program: Program
    grid: tuple[int, int, int]
    inputs: tuple[Handle, ...]
    outputs: tuple[OutputSpec, ...]
    structure: type[tuple[object, ...]] | type[list[object]] | None
    """How the kernel returns several tensors; None where it returns one or nothing."""

    @property
    def new_outputs(self) -> tuple[OutputSpec, ...]:
        """The outputs that need memory, in the order of the launch's arguments."""
        places = {one.argument: one for one in self.outputs if one.argument >= len(self.inputs)}
        return tuple(places[at] for at in sorted(places))


def launch(capture: Capture, arrays: Sequence[object]) -> object:
    """Run a captured call on the arrays that it was captured with; what it returns, in new numpy arrays."""
    made = [_undefined(spec) for spec in capture.new_outputs]
    handles = (*capture.inputs, *(memory().bind(array) for array in made))
    run_launch(capture.program, Launch(capture.kernel, capture.kernel, capture.grid, (1, 1, 1), handles), memory())
    everything = [*arrays, *made]
    results = [everything[spec.argument] for spec in capture.outputs]
    if capture.structure is not None:
        return capture.structure(results)
    return results[0] if results else None


def _undefined(spec: OutputSpec) -> NDArray[Any]:
    array = np.empty(spec.shape, spec.dtype)
    array.reshape(-1).view(np.uint8).fill(UNDEFINED_BYTE)
    return array
