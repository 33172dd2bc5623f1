"""Where an array's elements lie in the host's memory, who owns that memory, and how to see it as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.core.handles import Handle

Bytes = NDArray[np.uint8]
"""A one-dimensional view of memory that somebody else owns."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Memory of the host: `start` is a host address, `size` in bytes."""

    start: int
    size: int
    writable: bool

    def at_same_place(self, other: Extent) -> bool:
        """Whether both are the same memory, whatever may be done with it."""
        return self.start == other.start and self.size == other.size

    def contains(self, other: Extent) -> bool:
        """Whether the other lies wholly inside this."""
        return self.start <= other.start and other.start + other.size <= self.start + self.size


@dataclass(frozen=True, slots=True)
class Owner:
    """What owns an array's memory."""

    identity: int
    """Tells owners that live at the same time apart."""
    extent: Extent
    look: Callable[[], object | None]
    """Gives the owner itself; None once it is gone, or its memory lies elsewhere (a tensor resized in place)."""
    foreign: bool
    """Whether numpy does not own the memory: then another owner may own the same."""


Owners = Mapping[int, Owner]
"""Those that somebody has looked at before, by identity: to make one takes longer than to see that it is as it was."""


@dataclass(frozen=True, slots=True)
class HostArray:
    """An array of the host: its owner and its layout. `strides` and `start` in bytes, `start` a host address."""

    owner: Owner
    element: object
    """The dtype as its maker has it."""
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int
    raw: bool = False
    """Whether the elements are structs or the like: then the last axis runs over the bytes of one."""

    @property
    def label(self) -> str:
        """The dtype and shape, as messages show them."""
        shape = self.shape[:-1] if self.raw else self.shape
        return f"{str(self.element).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


class _Window:
    """Lends memory to numpy by address; numpy keeps it, and so `owner`, alive as long as the array that it makes."""

    def __init__(self, extent: Extent, owner: object | None) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "shape": (extent.size,),
            "typestr": "|u1",
            "data": (extent.start, not extent.writable),
            "version": 3,
        }


def window(extent: Extent, owner: object | None) -> Bytes:
    """The extent's bytes, without a copy; the result keeps `owner` alive. With None somebody else must."""
    if extent.size == 0:
        return np.empty(0, np.uint8)
    return np.asarray(_Window(extent, owner))


def elements(host: HostArray, array: object) -> NDArray[Any]:
    """The elements of `array`, of which `host` is the layout, as a numpy array over the same memory."""
    extent = host.owner.extent
    data = window(extent, array)
    return np.ndarray(host.shape, host.dtype.numpy, data, host.start - extent.start if extent.size else 0, host.strides)


def view(data: Bytes, handle: Handle) -> NDArray[Any]:
    """The handle's elements as a numpy array over its storage's bytes."""
    return np.ndarray(handle.shape, handle.dtype.numpy, data, handle.offset, handle.strides)
