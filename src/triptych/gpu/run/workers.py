"""Worker threads over a launch's blocks: the structures that generated code reads, and the loop that runs it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import Storage
from triptych.core.progress import Report
from triptych.core.source import Index
from triptych.gpu.hardware import PAIR_BYTES, PARAM_WINDOW, WARP_SIZE
from triptych.gpu.lower.records import NO_STOP, SCRATCH_BYTES, Context, Need, Site, StorageRow, Warp
from triptych.gpu.run.kernel import Kernel

_POLL_S = 0.05
"""How often the calling thread looks at the keyboard's interrupt and reports progress."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A launch's shape."""

    grid: Index
    block: Index
    shared_bytes: int
    """Static and dynamic."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // WARP_SIZE)

    def thread(self, number: int) -> Index:
        """`threadIdx` of the thread with this number in its block."""
        return _index(number, self.block)

    def block_index(self, number: int) -> Index:
        """`blockIdx` of the block with this number in the grid."""
        return _index(number, self.grid)


def _index(number: int, extent: Index) -> Index:
    x, y, _ = extent
    return number % x, number // x % y, number // (x * y)


@dataclass(frozen=True, slots=True)
class StorageTable:
    """The storages as generated code searches them, and which pairs of sectors of the arrays were read and written."""

    storages: tuple[Storage, ...]
    rows: NDArray[np.int64]
    """A `StorageRow` each, by ascending address."""
    read_map: NDArray[np.uint8]
    """1 for each pair of sectors that was read, storage after storage; the parameters' pairs come last."""
    write_map: NDArray[np.uint8]
    parameter_pairs: int

    @property
    def touched_pairs(self) -> tuple[int, int]:
        """Distinct pairs of sectors read, and written; those of the parameters left out."""
        end = len(self.read_map) - self.parameter_pairs
        return int(np.count_nonzero(self.read_map[:end])), int(np.count_nonzero(self.write_map[:end]))


def build_storage_table(memory: Mapping[Storage, NDArray[np.uint8]], parameters: NDArray[np.uint8]) -> StorageTable:
    """The table of all storages that a kernel may reach; its parameters are one, behind all others."""
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
        "delta": np.array(hosts, np.int64) - low,
        "writable": np.array([s.writable for s in storages], np.int64),
        "read_map": read_map.ctypes.data + starts - first,
        "write_map": write_map.ctypes.data + starts - first,
    }.items():
        rows[:, StorageRow.position(name)] = column
    return StorageTable(storages, rows, read_map, write_map, int(counts[-1]))


def thread_indices(geometry: Geometry) -> NDArray[np.int32]:
    """%tid.x, .y and .z of every thread of a block, an array of 3 × (warps · 32)."""
    linear = np.arange(geometry.warps * WARP_SIZE)
    x, y, _ = geometry.block
    return np.stack([linear % x, linear // x % y, linear // (x * y)]).astype(np.int32)


@dataclass(slots=True)
class Worker:
    """One worker's structures; it owns the memory that they point to."""

    context: Context
    sites: NDArray[np.int64]
    """A `Site` each."""
    counts: NDArray[np.int64]
    divergent: NDArray[np.int64]
    owned: list[Any] = field(default_factory=list[Any])


@dataclass(slots=True)
class LaunchState:
    """What all workers of a launch share."""

    geometry: Geometry
    table: StorageTable
    parameters: NDArray[np.uint8]
    symbols: NDArray[np.int64]
    budget: int
    argument_of: Mapping[str, int]
    """The kernel's argument that each storage was first passed as, by the storage's name."""
    next_block: Any = field(default_factory=lambda: ctypes.c_int64(0))
    stop_block: Any = field(default_factory=lambda: ctypes.c_int64(NO_STOP))


def make_worker(kernel: Kernel, state: LaunchState) -> Worker:
    """A worker with everything that its context points to."""
    geometry, facts = state.geometry, kernel.facts
    indices = thread_indices(geometry)
    block_shared = _aligned(geometry.shared_bytes)
    local = _aligned(facts.layout.local_bytes * geometry.warps * WARP_SIZE)
    frames = _aligned(facts.frame_bytes * geometry.warps)
    warps = _records(geometry.warps, Warp.size() // 8)
    numbers = np.arange(geometry.warps)
    warps[:, Warp.position("index")] = numbers
    warps[:, Warp.position("frame")] = frames.ctypes.data + numbers * facts.frame_bytes
    sites = _records(facts.sites, Site.size() // 8)
    sites[:, Site.position("low")] = 1  # an empty range: the first access looks its storage up
    scratch = _aligned(SCRATCH_BYTES)
    counts = _records(1, 2 * facts.blocks + facts.guards)[0]
    divergent = _records(1, facts.blocks)[0]
    own = _records(1, Context.size() // 8)
    context = Context.from_address(own.ctypes.data)
    values = {
        "next_block": ctypes.addressof(state.next_block), "stop_block": ctypes.addressof(state.stop_block),
        "total_blocks": geometry.blocks, "block_index": -1, "threads": geometry.threads, "warp_count": geometry.warps,
        "thread_indices": indices.ctypes.data, "index_stride": indices.shape[1],
        "parameters": state.parameters.ctypes.data, "shared": block_shared.ctypes.data,
        "shared_size": geometry.shared_bytes, "local": local.ctypes.data, "local_size": facts.layout.local_bytes,
        "frames": frames.ctypes.data, "frame_size": facts.frame_bytes, "warps": warps.ctypes.data,
        "sites": sites.ctypes.data, "site_count": len(sites),
        "block_counts": counts.ctypes.data, "divergent_counts": divergent.ctypes.data,
        "budget": state.budget, "converged": kernel.code("converged").form,
        "masked": kernel.known_code("masked"), "storages": state.table.rows.ctypes.data,
        "storage_count": len(state.table.storages), "symbols": state.symbols.ctypes.data,
        "scratch": scratch.ctypes.data,
    }  # fmt: skip
    for axis, extent, size in zip("xyz", geometry.grid, geometry.block, strict=True):
        values[f"nctaid_{axis}"], values[f"ntid_{axis}"] = extent, size
    for name, value in values.items():
        setattr(context, name, value)
    return Worker(context, sites, counts, divergent, [indices, block_shared, local, frames, warps, scratch, own])


def _aligned(size: int) -> NDArray[np.uint8]:
    """Host memory whose address is a multiple of 256, and which shares no 256 bytes with any other.

    Workers write their own structures all the time: two of them on one cache line would slow both down.
    """
    whole = np.empty(size + 512, np.uint8)
    start = -whole.ctypes.data % 256
    return whole[start : start + size]


def _records(count: int, fields: int) -> NDArray[np.int64]:
    """`count` records of 8-byte fields, all 0, in memory of their own."""
    memory = _aligned(8 * count * fields)
    memory[:] = 0
    return memory.view(np.int64).reshape(count, fields)


def run_workers(kernel: Kernel, state: LaunchState, count: int, report: Report) -> list[Worker]:
    """Runs all blocks on `count` threads; gives the workers with their counters, whether a fault stopped them or not.

    Raises:
        KeyboardInterrupt: the user asked to stop; the launch has ended by then.
    """
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(kernel.code("converged").run)
    workers = [make_worker(kernel, state) for _ in range(max(1, min(count, state.geometry.blocks)))]
    errors: list[BaseException] = []

    def work(worker: Worker) -> None:
        try:
            while run(ctypes.addressof(worker.context)) == Need.MASKED_FORM:
                worker.context.masked = kernel.code("masked").form
        except BaseException as error:
            errors.append(error)
            state.stop_block.value = -1

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        _wait(threads, workers, state, report)
    except BaseException:
        state.stop_block.value = -1
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]
    return workers


def _wait(threads: list[threading.Thread], workers: list[Worker], state: LaunchState, report: Report) -> None:
    for thread in threads:
        thread.join(0.002)
        while thread.is_alive():
            thread.join(_POLL_S)
            report(sum(worker.context.done_blocks for worker in workers), state.geometry.blocks)
