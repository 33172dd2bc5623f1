"""The heap of `malloc`: memory of the device that kernels allocate, which outlives their launches.

As on a device there is one heap, for all modules (`DeviceMemory` holds it).
"""

from __future__ import annotations

import numpy as np

from triptych.core.forks import StateLock
from triptych.core.handles import Storage
from triptych.gpu.hardware import FIRST_HEAP_ADDRESS
from triptych.gpu.lower.records import GRANULE_BYTES


class DeviceHeap:
    """Allocations one behind the other; memory given back is used again, for allocations of the same size first."""

    def __init__(self, size: int) -> None:
        """`size` in bytes."""
        granules = max(size // GRANULE_BYTES, 1)
        self.storage = Storage("heap", FIRST_HEAP_ADDRESS, granules * GRANULE_BYTES)
        self.memory = np.zeros(granules * GRANULE_BYTES, np.uint8)
        self.bounds = np.zeros((granules, 2), np.int64)
        """By granule: the first address of the allocation that holds it, and the one behind its last; 0 where none
        does. Generated code reads it."""
        self.live: dict[int, int] = {}
        """By address: the bytes of each allocation."""
        self._lock = StateLock()
        self._next = 0
        self._free: dict[int, list[int]] = {}

    def clone(self) -> DeviceHeap:
        """Another with the same contents, at the same addresses."""
        with self._lock:
            other = DeviceHeap(self.memory.nbytes)
            other.memory[:], other.bounds[:] = self.memory, self.bounds
            other.live, other._next = dict(self.live), self._next
            other._free = {size: list(places) for size, places in self._free.items()}
            return other

    def has_size(self, size: int) -> bool:
        """Whether it is as large as one made with `size` bytes."""
        return len(self.bounds) == max(size // GRANULE_BYTES, 1)

    def allocate(self, size: int, byte: int) -> int:
        """The address of `size` new bytes, each of which holds `byte`; 0 where there is no room."""
        count = _granules(size)
        with self._lock:
            place = self._find(count)
            if place is None:
                return 0
            address = self.storage.address + place * GRANULE_BYTES
            self.bounds[place : place + count] = (address, address + size)
            self.live[address] = size
            self.memory[place * GRANULE_BYTES : (place + count) * GRANULE_BYTES] = byte
            return address

    def _find(self, count: int) -> int | None:
        """The first of `count` free granules."""
        for merged in (False, True):
            if merged:
                self._merge()
            if self._free.get(count):
                return self._free[count].pop()
            if self._next + count <= len(self.bounds):
                self._next += count
                return self._next - count
        larger = [size for size, places in self._free.items() if size > count and places]
        if not larger:
            return None
        size = min(larger)
        place = self._free[size].pop()
        self._free.setdefault(size - count, []).append(place + count)
        return place

    def _merge(self) -> None:
        """Joins free granules that are neighbours; those at the end count as never used."""
        pieces = sorted((place, size) for size, places in self._free.items() for place in places)
        joined: list[tuple[int, int]] = []
        for place, size in pieces:
            if joined and sum(joined[-1]) == place:
                joined[-1] = (joined[-1][0], joined[-1][1] + size)
            else:
                joined.append((place, size))
        if joined and sum(joined[-1]) == self._next:
            self._next = joined.pop()[0]
        self._free = {}
        for place, size in joined:
            self._free.setdefault(size, []).append(place)

    def release(self, address: int) -> bool:
        """Gives an allocation back; False where none starts at the address."""
        with self._lock:
            size = self.live.pop(address, None)
            if size is None:
                return False
            place, count = (address - self.storage.address) // GRANULE_BYTES, _granules(size)
            self.bounds[place : place + count] = 0
            self._free.setdefault(count, []).append(place)
            return True

    def bounds_at(self, address: int) -> tuple[int, int]:
        """The first address of the allocation that holds an address, and the one behind its last; 0 where none does."""
        low, high = self.bounds[(address - self.storage.address) // GRANULE_BYTES].tolist()
        return low, high

    def nearest(self, address: int) -> tuple[int, int] | None:
        """The address and the bytes of the allocation that is nearest to an address."""

        def distance(item: tuple[int, int]) -> int:
            start, size = item
            return max(start - address, address - (start + size - 1), 0)

        return min(self.live.items(), key=distance, default=None)


def _granules(size: int) -> int:
    """The granules of an allocation; one of 0 bytes has an address too."""
    return max(-(-size // GRANULE_BYTES), 1)
