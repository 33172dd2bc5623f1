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
    hosts = [(parameters if s is own else memory[s]).__array_interface__["data"][0] for s in storages]
    low = np.array([s.address for s in storages], np.int64)
    high = np.array([s.end for s in storages], np.int64)
    first, last = low // PAIR_BYTES, (np.maximum(high, low + 1) - 1) // PAIR_BYTES
    counts = last - first + 1
    starts = np.cumsum(counts) - counts
    read_map, write_map = (np.zeros(int(counts.sum()), np.uint8) for _ in range(2))
    rows = np.empty((len(storages), StorageRow.size() // 8), np.int64)
    for name, column in {
        "low": low,
        "high": high,
        "view_low": np.array([views.get(s, (0, 0))[0] for s in storages], np.int64),
        "view_high": np.array([views.get(s, (0, 0))[1] for s in storages], np.int64),
        "delta": np.array(hosts, np.int64) - low,
        "writable": np.array([s.writable for s in storages], np.int64),
        "read_map": read_map.ctypes.data + starts - first,
        "write_map": write_map.ctypes.data + starts - first,
        "parts": np.array([0 if heap is None or s is not heap.storage else heap.bounds.ctypes.data for s in storages]),
    }.items():
        rows[:, StorageRow.position(name)] = column
    return StorageTable(storages, rows, read_map, write_map, int(counts[low >= FIRST_HEAP_ADDRESS].sum()))
