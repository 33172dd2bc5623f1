"""`tt.Array`: an array with a device address, for kernels that want no more than that (no torch needed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from types import EllipsisType
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import dtype_of
from triptych.core.errors import UsageError
from triptych.core.handles import Handle
from triptych.core.settings import settings
from triptych.execution.memory import memory

UNDEFINED_BYTE = 0xFF
"""What fresh memory holds where no setting says otherwise: NaN in every floating-point format here, -1 in integers, so
that a missing store shows."""

Index = SupportsIndex | slice | EllipsisType | None
Shape = SupportsIndex | Sequence[SupportsIndex]


class Array:
    """Elements in the host's memory with a device address; slices are views of the same storage."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: NDArray[Any]) -> None:
        """Wraps a numpy array without copying it."""
        self._buffer = buffer

    @property
    def host_buffer(self) -> NDArray[Any]:
        """The elements as a numpy array; a view."""
        return self._buffer

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._buffer.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, as numpy names it (`bfloat16` and the 8-bit floats come from ml_dtypes)."""
        return self._buffer.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._buffer.strides

    @property
    def size(self) -> int:
        """Elements."""
        return self._buffer.size

    @property
    def ndim(self) -> int:
        """Axes."""
        return self._buffer.ndim

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps between them left out."""
        return self._buffer.nbytes

    @property
    def handle(self) -> Handle:
        """The view that a plan holds of this array."""
        return memory().bind(self)

    def data_ptr(self) -> int:
        """The device address of the first element."""
        return self.handle.data_ptr()

    @overload
    def stride(self, axis: int) -> int: ...
    @overload
    def stride(self, axis: None = None) -> tuple[int, ...]: ...
    def stride(self, axis: int | None = None) -> int | tuple[int, ...]:
        """Elements from one element to the next along `axis`, as kernels take it; along each where none is named."""
        steps = tuple(step // self.dtype.itemsize for step in self.strides)
        return steps if axis is None else steps[axis]

    def numpy(self) -> NDArray[Any]:
        """The elements as a numpy array; a view."""
        return self._buffer

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[Any]:
        """numpy's protocol: a view, or a copy where the dtype differs or one is asked for."""
        return np.array(self._buffer, dtype=dtype, copy=copy)  # type: ignore[call-overload]

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Array:
        """A view, of no axes where every index is a number; picking elements by lists or masks makes no view."""
        parts = key if isinstance(key, tuple) else (key,)
        view = self._buffer[parts if any(part is ... for part in parts) else (*parts, ...)]
        if view.size and not np.may_share_memory(view, self._buffer):
            raise UsageError(
                "indexing by a list or a mask copies the elements, and the copy would have an address of its own",
                hint="index with numbers and slices, or use .numpy()",
            )
        return Array(view)

    def __setitem__(self, key: Index | tuple[Index, ...], value: object) -> None:
        """Stores elements from the host, as numpy does."""
        self._buffer[key] = np.asarray(value)

    def __len__(self) -> int:
        """Elements along the first axis."""
        return len(self._buffer)

    def __iter__(self) -> Iterator[Array]:
        """Views along the first axis."""
        return (self[position] for position in range(len(self)))

    def reshape(self, *shape: int) -> Array:
        """The same elements in another shape, as a view.

        Raises:
            UsageError: where strides stand in the way of a view.
        """
        reshaped = self._buffer.reshape(shape)
        if self.size and not np.may_share_memory(reshaped, self._buffer):
            raise UsageError(f"an array of strides {self.strides} has no view of shape {shape}")
        return Array(reshaped)

    def transpose(self, *axes: int) -> Array:
        """The axes in another order (reversed where none is named), as a view."""
        return Array(self._buffer.transpose(*axes))

    def view(self, dtype: object) -> Array:
        """The same bytes as elements of another type, as numpy's `view`: the last axis has more or fewer of them.

        Raises:
            UsageError: where the last axis has gaps, or not the bytes of a whole number of elements.
        """
        try:
            return Array(self._buffer.view(dtype_of(dtype).numpy))
        except ValueError as error:
            raise UsageError(f"an array of {self.dtype}{list(self.shape)} has no view as {dtype}: {error}") from error

    def clone(self) -> Array:
        """A copy with an address of its own, C-ordered."""
        return Array(np.array(self._buffer, order="C"))

    def copy_(self, source: object) -> Array:
        """Stores the elements of `source`, broadcast and converted as numpy does; returns this array."""
        np.copyto(self._buffer, np.asarray(source), casting="same_kind")
        return self

    def fill_(self, value: float) -> Array:
        """Stores `value` in every element; returns this array."""
        self._buffer.fill(value)
        return self

    def zero_(self) -> Array:
        """Stores 0 in every element; returns this array."""
        return self.fill_(0)

    def item(self) -> bool | int | float:
        """The value of an array of one element."""
        return self._buffer.item()

    def __repr__(self) -> str:
        """Shape, dtype and the values as numpy prints them."""
        return f"Array(shape={self.shape}, dtype={self.dtype}, {np.array2string(self._buffer, threshold=20)})"


def undefined_byte() -> int:
    """What every byte of fresh memory holds: as `TRIPTYCH_UNDEFINED_BYTE` says, else `UNDEFINED_BYTE`."""
    byte = settings().undefined_byte
    return UNDEFINED_BYTE if byte is None else byte


def empty(shape: Shape, dtype: object = "f32") -> Array:
    """A new array with undefined contents (every byte is `undefined_byte()`); `dtype` as `f32` or numpy's own names.

    Raises:
        UnknownName: for an element type that no kernel language has.
    """
    recorder = memory().recorder
    if recorder is not None:
        return recorder.empty(extents_of(shape), dtype_of(dtype))
    array = np.empty(shape, dtype_of(dtype).numpy)
    array.reshape(-1).view(np.uint8).fill(undefined_byte())
    return Array(array)


def zeros(shape: Shape, dtype: object = "f32") -> Array:
    """A new array of zeros; `dtype` as `f32` or numpy's own names.

    Raises:
        UnknownName: for an element type that no kernel language has.
    """
    recorder = memory().recorder
    if recorder is not None:
        return recorder.zeros(extents_of(shape), dtype_of(dtype))
    return Array(np.zeros(shape, dtype_of(dtype).numpy))


def extents_of(shape: Shape) -> tuple[int, ...]:
    """A shape as numpy takes it: a whole number is one axis.

    Raises:
        UsageError: for anything else, and for a negative extent.
    """
    try:
        found = tuple(map(index, shape)) if isinstance(shape, Sequence) else (index(shape),)
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0:
        raise UsageError(f"shape {shape!r}: expected whole numbers of 0 or more")
    return found
