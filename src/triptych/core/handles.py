"""Array handles: what a language sees of an array. Shape, dtype, strides and a stable device address; no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from triptych.core.dtypes import DType

ALLOCATION_ALIGNMENT = 256
"""Bytes. Device allocations start at a multiple of this, as cudaMalloc's do."""


@dataclass(frozen=True, slots=True)
class Storage:
    """An allocation in the device's address space; the boundary that no access may cross."""

    name: str
    address: int
    size: int
    """Bytes."""
    writable: bool = True

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Handle:
    """A view of a storage: `offset` and `strides` in bytes, `shape` in elements."""

    storage: Storage
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps between them left out."""
        return self.size * self.dtype.bytes

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    def data_ptr(self) -> int:
        """The device address of the first element."""
        return self.storage.address + self.offset

    @property
    def in_order(self) -> bool:
        """Whether elements lie in memory in the order of their indices, each at a place of its own; gaps may be."""
        span = self.dtype.bytes
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent > 1:
                if stride < span:
                    return False
                span += (extent - 1) * stride
        return True

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps; the stride of an axis of one element does not matter."""
        dense = self.dtype.bytes
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent > 1 and stride != dense:
                return 0 in self.shape
            dense *= extent
        return True


def contiguous_strides(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """The strides in bytes of a C-ordered array without gaps."""
    strides: list[int] = []
    step = dtype.bytes
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


class AddressSpace:
    """Hands out device addresses in order of request: aligned, with a gap behind each that no array owns.

    The addresses depend on the requests alone, so counters that depend on addresses are the same in every run.
    """

    FIRST_ADDRESS = 0x0010_0000_0000
    END_ADDRESS = 0x7B00_0000_0000
    """The first address behind all arrays. What a machine has of its own lies outside of these two."""
    GUARD = 4096
    """Bytes left free behind each allocation, so that a small overrun hits nothing."""

    def __init__(self) -> None:
        """An empty space."""
        self._next = self.FIRST_ADDRESS

    def clone(self) -> Self:
        """Another that goes on where this one is."""
        other = type(self)()
        other._next = self._next
        return other

    def place(self, name: str, size: int, *, writable: bool = True) -> Storage:
        """A new storage of `size` bytes."""
        storage = Storage(name, self._next, size, writable)
        used = size + self.GUARD
        self._next += -(-used // ALLOCATION_ALIGNMENT) * ALLOCATION_ALIGNMENT
        return storage
