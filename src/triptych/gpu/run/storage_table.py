"""The table of storages: how generated code finds host memory for an address, and which pairs of sectors it touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import Storage
from triptych.core.placed_memory import PlacedMemory
from triptych.core.touched import Touched
from triptych.gpu.hardware import PAIR_BYTES, PARAM_WINDOW
from triptych.gpu.lower.records import StorageRow
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.host_memory import address_of

_LOW, _PARTS = StorageRow.position("low"), StorageRow.position("parts")
_VIEW = slice(StorageRow.position("view_low"), StorageRow.position("view_high") + 1)
_MAPS = slice(StorageRow.position("read_map"), StorageRow.position("write_map") + 1)
_READ_MAP = StorageRow.position("read_map")
_NAMES = StorageRow.names()


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Storages as rows of a table, by ascending address: worked out once where the same ones stay where they are.

    It holds host addresses alone: whoever has it keeps the bytes alive while they are used.
    """

    storages: tuple[Storage, ...]
    rows: NDArray[np.int64]
    """A `StorageRow` each, whose maps are biased by the pair's number and counted from where the region's begin."""
    pairs: int
    """Pairs of sectors of all storages."""

    @classmethod
    def of(cls, memory: Mapping[Storage, NDArray[np.uint8]]) -> Region:
        """The region of storages, from their bytes."""
        return memory.derive(cls, cls._make) if isinstance(memory, PlacedMemory) else cls._make(memory)

    @classmethod
    def _make(cls, memory: Mapping[Storage, NDArray[np.uint8]]) -> Region:
        rows: list[list[int]] = []
        pairs = 0
        ordered = sorted(memory.items(), key=lambda item: item[0].address)
        for storage, data in ordered:
            rows.append(_row(storage, address_of(data), pairs))
            pairs += _pairs(storage)
        table = np.array(rows, np.int64).reshape(len(rows), len(_NAMES))
        return cls(tuple(storage for storage, _ in ordered), table, pairs)


def _pairs(storage: Storage) -> int:
    """How many pairs of sectors it lies in; one where it has no bytes."""
    return max(storage.end - 1, storage.address) // PAIR_BYTES + 1 - storage.address // PAIR_BYTES


def _row(storage: Storage, host: int, before: int) -> list[int]:
    """Its `StorageRow`, at an address of the host, with so many pairs before its own in the maps."""
    place = before - storage.address // PAIR_BYTES
    values = {
        "low": storage.address, "high": storage.end, "view_low": 0, "view_high": 0,
        "delta": host - storage.address, "writable": storage.writable,
        "read_map": place, "write_map": place, "parts": 0,
    }  # fmt: skip
    return [values[name] for name in _NAMES]


def _count(marks: NDArray[np.uint8]) -> int:
    """How many are 1. numpy is the slower way until there are some thousand."""
    return marks.tobytes().count(1) if marks.size <= 4096 else int(np.count_nonzero(marks))


Views = Mapping[Storage, tuple[int, int]]
"""The first address and the end of what a launch passed of a storage, where accesses beside it are to be noted."""


@dataclass(slots=True, eq=False)
class StorageTable:
    """The storages as generated code searches them, and which pairs of sectors of the arrays were read and written."""

    regions: tuple[Region, ...]
    """What it was made of."""
    storages: tuple[Storage, ...]
    rows: NDArray[np.int64]
    """A `StorageRow` each, by ascending address."""
    maps: NDArray[np.uint8]
    """1 for each pair of sectors that was read, storage after storage, then for each that was written; those of the
    heap and of the parameters come last."""
    of_arrays: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    """The parts of the two without the heap and the parameters."""
    parameters: bytearray
    """The kernel's; they do not move."""
    places: tuple[int, int]
    """Where the rows and the parameters lie on the host."""
    views: Views = field(default_factory=dict[Storage, tuple[int, int]])

    @property
    def touched_pairs(self) -> tuple[int, int]:
        """Distinct pairs of sectors read, and written; not those of the parameters, nor of the heap.

        What a kernel allocates need not come from memory, and which of it is used again depends on who was first.
        """
        read, written = self.of_arrays
        return _count(read), _count(written)

    @property
    def touched(self) -> tuple[Touched, ...]:
        """What was read and written of each storage but the heap and the parameters; atomics count as written."""
        read, written = (one.astype(np.bool_) for one in self.of_arrays)
        begin, found = address_of(self.maps), list[Touched]()
        for storage, row in zip(self.storages, self.rows.tolist(), strict=True):
            first = row[_READ_MAP] - begin + storage.address // PAIR_BYTES
            end = first + _pairs(storage)
            if end <= len(read):
                found.append(Touched(storage, PAIR_BYTES, read[first:end], written[first:end]))
        return tuple(found)

    def begin(self, views: Views) -> None:
        """Ready for a launch that passes these views."""
        if self.views:
            self.rows[:, _VIEW] = 0
        self.views = views
        for storage, view in views.items():
            self.rows[self.storages.index(storage), _VIEW] = view

    def end(self) -> None:
        """Nothing was touched."""
        self.maps.fill(0)


def build_storage_table(regions: tuple[Region, ...], size: int, heap: DeviceHeap | None = None) -> StorageTable:
    """The table of all storages that a kernel with `size` bytes of parameters may reach.

    The heap and its parameters are behind all others.
    """
    parameters = bytearray(size)
    own = Storage("parameters", PARAM_WINDOW, size, writable=False)
    ordered = sorted((one for one in regions if one.storages), key=lambda one: one.storages[0].address)
    if heap is not None:
        ordered.append(Region.of({heap.storage: heap.memory}))
    storages = (*(storage for one in ordered for storage in one.storages), own)
    before = sum(one.pairs for one in ordered)
    maps = np.zeros((2, before + _pairs(own)), np.uint8)
    rows = np.concatenate([*(one.rows for one in ordered), [_row(own, address_of(parameters), before)]])
    place, start = 0, 0
    for one in ordered:
        rows[place : place + len(one.storages), _MAPS] += start
        place, start = place + len(one.storages), start + one.pairs
    begin = address_of(maps)
    rows[:, _MAPS] += (begin, begin + maps.shape[1])
    if any(one.storages[-1].address > other.storages[0].address for one, other in pairwise(ordered)):
        rows = rows[np.argsort(rows[:, _LOW])]
        storages = tuple(sorted(storages, key=lambda storage: storage.address))
    if heap is not None:
        rows[-2, _PARTS] = address_of(heap.bounds)
    end = before if heap is None else before - ordered[-1].pairs
    places = address_of(rows), address_of(parameters)
    return StorageTable(regions, storages, rows, maps, (maps[0, :end], maps[1, :end]), parameters, places)
