"""The data of a trace's tensors while they live, and numpy views of their regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Region, Tensor

Bytes = NDArray[np.uint8]

# What memory that nobody wrote holds: NaN where there is one, else a number that is seldom right.
_UNDEFINED_INTEGER = 4


@dataclass(slots=True)
class Shadow:
    """Which bytes of an HBM storage were loaded (0 or 1) and stored (0, or 1 + the program that did it last)."""

    loads: Bytes
    stores: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, size: int, programs: int) -> Shadow:
        """The shadow of `size` bytes that none of so many programs has touched."""
        return cls(np.zeros(size, np.uint8), np.zeros(size, np.min_scalar_type(programs)))


def region_view(
    data: Bytes, base: int, item: int, dtype: np.dtype[Any] | type[np.generic], region: Region
) -> NDArray[Any]:
    """A region of `data`: elements of `item` bytes, the tensor's element 0 at byte `base`. numpy checks the bounds."""
    strides = tuple(step * item for step, _ in region.pattern)
    return np.ndarray(region.shape, dtype, buffer=data, offset=base + region.offset * item, strides=strides)


def stamps_view(stamps: NDArray[Any], base: int, item: int, region: Region) -> NDArray[Any]:
    """The stamps of a region's bytes, those of an element of `item` bytes along a last axis."""
    width = stamps.itemsize
    strides = (*(step * item * width for step, _ in region.pattern), width)
    offset = (base + region.offset * item) * width
    return np.ndarray((*region.shape, item), stamps.dtype, buffer=stamps, offset=offset, strides=strides)


@dataclass(slots=True)
class Buffer:
    """A tensor's bytes from `base` on, and what is known of its elements."""

    tensor: Tensor
    data: Bytes
    base: int = 0
    defined: NDArray[np.bool_] | None = None
    """Which elements were written; None once all of them are."""
    accumulating: NDArray[np.bool_] | None = None
    """PSUM: which elements a matmul wrote last, so that the next one adds."""
    shadow: Shadow | None = None
    writable: bool = True

    def view(self, region: Region) -> NDArray[Any]:
        """The elements of a region, as they lie in memory."""
        dtype = self.tensor.dtype
        return region_view(self.data, self.base, dtype.bytes, dtype.numpy, region)

    def defined_view(self, region: Region) -> NDArray[np.bool_] | None:
        """Which elements of a region were written; None where all were."""
        if self.defined is None:
            return None
        flags = region_view(self.defined.view(np.uint8), 0, 1, np.bool_, region)
        return None if flags.all() else flags

    def mark_defined(self, region: Region, flags: NDArray[np.bool_] | None) -> None:
        """The region was written; `flags` says which of its elements got a defined value (None: all)."""
        if self.defined is None:
            if flags is None:
                return
            self.defined = np.ones(self.tensor.size, np.bool_)
        view = region_view(self.defined.view(np.uint8), 0, 1, np.bool_, region)
        view[...] = True if flags is None else flags.reshape(view.shape)
        if flags is None and region.size >= self.tensor.size and self.defined.all():  # a step of 0 repeats elements
            self.defined = None

    def accumulating_view(self, region: Region) -> NDArray[np.bool_]:
        """The accumulation flags of a region of PSUM."""
        if self.accumulating is None:
            self.accumulating = np.zeros(self.tensor.size, np.bool_)
        return region_view(self.accumulating.view(np.uint8), 0, 1, np.bool_, region)


def new_buffer(tensor: Tensor, programs: int) -> Buffer:
    """Memory for a tensor that no argument provides, in a grid of `programs`: undefined, or zero where it says so."""
    values = np.empty(tensor.size, tensor.dtype.numpy)
    if tensor.zeroed:
        values[...] = 0
    else:
        values[...] = np.nan if tensor.dtype.is_float else _UNDEFINED_INTEGER
    buffer = Buffer(tensor, values.view(np.uint8))
    if not tensor.zeroed:
        buffer.defined = np.zeros(tensor.size, np.bool_)
    if tensor.space is Space.HBM:
        buffer.shadow = Shadow.of(values.nbytes, programs)
    return buffer
