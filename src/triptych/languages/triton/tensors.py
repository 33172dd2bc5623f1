"""numpy arrays with the few tensor methods that Triton's host side calls."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from triptych.execution.arrays import Array
from triptych.execution.capture import CapturedArray
from triptych.execution.memory import memory


class TensorArray(np.ndarray[Any, Any]):
    """A numpy array that Triton's autotuner (`reset_to_zero`, `restore_value`) and `TensorDescriptor` can handle."""

    def data_ptr(self) -> int:
        """The device address of the first element."""
        return memory().bind(self).data_ptr()

    def stride(self, axis: int | None = None) -> int | tuple[int, ...]:
        """The strides in elements, or that of one axis."""
        strides = tuple(step // self.itemsize for step in self.strides)
        return strides if axis is None else strides[axis]

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.itemsize

    def numel(self) -> int:
        """Elements."""
        return self.size

    def zero_(self) -> Self:
        """All elements become zero, in place."""
        self.fill(0)
        return self

    def clone(self) -> Self:
        """A copy with memory of its own."""
        return self.copy()

    def copy_(self, source: NDArray[Any]) -> Self:
        """The elements of `source`, in place."""
        np.copyto(self, source)
        return self


def tensor(array: NDArray[Any] | Array) -> TensorArray:
    """A view of `array` (no copy) with `data_ptr()`, `stride()`, `zero_()` …, as host code written for torch expects.

    For host code that calls such methods itself: `TensorDescriptor.from_tensor(tensor(x), [64, 64])`. Kernels take
    plain numpy arrays.
    """
    if isinstance(array, CapturedArray):
        return cast(TensorArray, array)  # it has these methods
    return np.asarray(array).view(TensorArray)
