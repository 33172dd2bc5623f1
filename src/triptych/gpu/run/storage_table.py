"""The table of storages: how generated code finds host memory for an address, and which pairs of sectors it touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import Storage
from triptych.gpu.hardware import FIRST_HEAP_ADDRESS, PAIR_BYTES, PARAM_WINDOW
from triptych.gpu.lower.records import StorageRow
from triptych.gpu.run.heap import DeviceHeap

_FIELDS = StorageRow.names()


@dataclass(frozen=True, slots=True)
class StorageTable:
    """The storages as generated code searches them, and which pairs of sectors of the arrays were read and written."""

    storages: tuple[Storage, ...]
    rows: NDArray[np.int64]
    """A `StorageRow` each, by ascending address."""
    read_map: NDArray[np.uint8]
    """1 for each pair of sectors that was read, storage after storage; the heap's and the parameters' come last."""
    write_map: NDArray[np.uint8]
    own_pairs: int
    """The pairs of the heap and the parameters."""

    @property
    def touched_pairs(self) -> tuple[int, int]:
        """Distinct pairs of sectors read, and written; not those of the parameters, nor of the heap.

        What a kernel allocates need not come from memory, and which of it is used again depends on who was first.
        """
        end = len(self.read_map) - self.own_pairs
        return int(np.count_nonzero(self.read_map[:end])), int(np.count_nonzero(self.write_map[:end]))


def build_storage_table(
    memory: Mapping[Storage, NDArray[np.uint8]],
    parameters: NDArray[np.uint8],
    views: Mapping[Storage, tuple[int, int]],
    heap: DeviceHeap | None = None,
) -> StorageTable:
    """The table of all storages that a kernel may reach; the heap and its parameters are behind all others.

    `views` are the first address and the end of what the launch passed of a storage, where accesses beside it are to
    be noted.
    """
    if heap is not None:
        memory = {**memory, heap.storage: heap.memory}
    own = Storage("parameters", PARAM_WINDOW, parameters.nbytes, writable=False)
    storages = (*sorted(memory, key=lambda s: s.address), own)
    firsts = [one.address // PAIR_BYTES for one in storages]
    lasts = [max(one.end - 1, one.address) // PAIR_BYTES for one in storages]
    counts = [last + 1 - first for first, last in zip(firsts, lasts, strict=True)]
    read_map, write_map = (np.zeros(sum(counts), np.uint8) for _ in range(2))
    reads, writes, start = read_map.ctypes.data, write_map.ctypes.data, 0
    rows: list[list[int]] = []
    for storage, first, count in zip(storages, firsts, counts, strict=True):
        host = (parameters if storage is own else memory[storage]).__array_interface__["data"][0]
        view_low, view_high = views.get(storage, (0, 0))
        values = {
            "low": storage.address, "high": storage.end, "view_low": view_low, "view_high": view_high,
            "delta": host - storage.address, "writable": storage.writable,
            "read_map": reads + start - first, "write_map": writes + start - first,
            "parts": 0 if heap is None or storage is not heap.storage else heap.bounds.ctypes.data,
        }  # fmt: skip
        rows.append([values[name] for name in _FIELDS])
        start += count
    beside = sum(count for one, count in zip(storages, counts, strict=True) if one.address >= FIRST_HEAP_ADDRESS)
    return StorageTable(storages, np.array(rows, np.int64), read_map, write_map, beside)
