"""What generated code reads and writes while it runs: the table of storages, and the structures of each worker."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import Handle, Storage
from triptych.core.plan import Launch, Scalar
from triptych.gpu.hardware import FIRST_HEAP_ADDRESS, PAIR_BYTES, PARAM_WINDOW, WARP_SIZE
from triptych.gpu.lower.records import NO_STOP, SCRATCH_BYTES, Context, Site, Slot, StorageRow
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.host_calls import HostCalls
from triptych.gpu.run.host_memory import aligned, records
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.slots import Slots, add_slots


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

    `views` are the first address and the end of what the launch passed of each storage.
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
        "view_low": np.array([views.get(s, (s.address, s.end))[0] for s in storages], np.int64),
        "view_high": np.array([views.get(s, (s.address, s.end))[1] for s in storages], np.int64),
        "delta": np.array(hosts, np.int64) - low,
        "writable": np.array([s.writable for s in storages], np.int64),
        "read_map": read_map.ctypes.data + starts - first,
        "write_map": write_map.ctypes.data + starts - first,
        "parts": np.array([0 if heap is None or s is not heap.storage else heap.bounds.ctypes.data for s in storages]),
    }.items():
        rows[:, StorageRow.position(name)] = column
    return StorageTable(storages, rows, read_map, write_map, int(counts[low >= FIRST_HEAP_ADDRESS].sum()))


def thread_indices(geometry: Geometry) -> NDArray[np.int32]:
    """%tid.x, .y and .z of every thread of a block, an array of 3 × (warps · 32)."""
    linear = np.arange(geometry.warps * WARP_SIZE)
    x, y, _ = geometry.block
    return np.stack([linear % x, linear // x % y, linear // (x * y)]).astype(np.int32)


@dataclass(slots=True)
class Worker:
    """One worker's structures; it owns the memory that they point to."""

    context: Context
    slots: Slots
    counts: NDArray[np.int64]
    """All, as the kernel's `CountLayout` says."""
    sites: NDArray[np.int64]
    """A `Site` each: the last of the counts."""
    writing: NDArray[np.int64]
    """The sites whose requests show that something was done."""
    owned: list[Any] = field(default_factory=list[Any])
    is_done: bool = False
    host: HostCalls | None = None
    """Where the kernel calls functions of the host."""

    def count_doings(self) -> int:
        """A number that changes when the worker does more than wait."""
        written = self.sites[self.writing]
        requests = (written[:, Site.position(name)].sum() for name in ("requests", "contiguous", "broadcast"))
        return self.context.progress + int(sum(requests))


@dataclass(frozen=True, slots=True)
class Passed:
    """An array as the kernel received it; `label` is how messages call it: `argument 1, x`."""

    label: str
    handle: Handle


def passed_arrays(launch: Launch) -> Mapping[str, Passed]:
    """The first argument that each storage was passed as, by the storage's name."""
    found: dict[str, Passed] = {}
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, Handle):
            found.setdefault(argument.storage.name, Passed(_label(launch, position), argument))
    return found


def null_arguments(launch: Launch) -> Mapping[int, str]:
    """What may be a null pointer: the integers of 8 bytes that are 0, by their places, as messages call them."""
    return {
        position: _label(launch, position)
        for position, argument in enumerate(launch.arguments)
        if isinstance(argument, Scalar) and argument.value == 0 and argument.dtype.name in ("u64", "s64")
    }


def _label(launch: Launch, position: int) -> str:
    return f"argument {position}" + (f", {launch.names[position]}" if position < len(launch.names) else "")


@dataclass(slots=True, kw_only=True)
class LaunchState:
    """What all workers of a launch share."""

    geometry: Geometry
    table: StorageTable
    parameters: NDArray[np.uint8]
    symbols: NDArray[np.int64]
    budget: int
    most_held: int
    """Blocks that all workers together may hold at once."""
    argument_of: Mapping[str, Passed]
    """The kernel's argument that each storage was first passed as, by the storage's name."""
    null_arguments: Mapping[int, str]
    """What may be a null pointer, by its place among the arguments, as messages call it."""
    grid_workspace: int
    """The address of what grid-wide barriers count in, 0 where the launch is not cooperative."""
    heap: DeviceHeap | None
    """Where the kernel may allocate, or reach what another one has allocated."""
    printed: PrintedText
    next_block: Any = field(default_factory=lambda: ctypes.c_int64(0))
    stop_block: Any = field(default_factory=lambda: ctypes.c_int64(NO_STOP))

    @property
    def last_block(self) -> int:
        """The last block that runs to its end, or to its fault."""
        return self.stop_block.value + 1


def make_worker(kernel: Kernel, state: LaunchState, workers: int) -> Worker:
    """One of several workers, with everything that its context points to."""
    geometry, facts = state.geometry, kernel.facts
    indices = thread_indices(geometry)
    layout = facts.counts
    counts = records(1, layout.size)[0]
    sites = counts[layout.site(0) :].reshape(layout.sites, Site.size() // 8)
    sites[:, Site.position("low")] = 1  # an empty range: the first access looks its storage up
    scratch = aligned(SCRATCH_BYTES)
    own = records(1, Context.size() // 8)
    context = Context.from_address(own.ctypes.data)
    values = {
        "next_block": ctypes.addressof(state.next_block), "stop_block": ctypes.addressof(state.stop_block),
        "total_blocks": geometry.blocks, "threads": geometry.threads, "warp_count": geometry.warps,
        "thread_indices": indices.ctypes.data, "index_stride": indices.shape[1],
        "parameters": state.parameters.ctypes.data,
        "shared_size": geometry.shared_bytes, "local_size": geometry.local_bytes,
        "sites": sites.ctypes.data, "site_count": len(sites),
        "counts": counts.ctypes.data,
        "budget": state.budget, "converged": kernel.code("converged").form,
        "masked": kernel.known_code("masked"), "storages": state.table.rows.ctypes.data,
        "storage_count": len(state.table.storages), "symbols": state.symbols.ctypes.data,
        "scratch": scratch.ctypes.data,
        "envreg_1": state.grid_workspace >> 32, "envreg_2": state.grid_workspace & 0xFFFF_FFFF,
    }  # fmt: skip
    for axis, extent, size in zip("xyz", geometry.grid, geometry.block, strict=True):
        values[f"nctaid_{axis}"], values[f"ntid_{axis}"] = extent, size
    for name, value in values.items():
        setattr(context, name, value)
    context.wanted, context.slot_limit = 1, -(-state.most_held // workers)
    slots = add_slots(None, 1, kernel, geometry, context)
    for name in Slot.names():
        setattr(context, name, int(slots.rows[0, Slot.position(name)]))
    worker = Worker(context, slots, counts, sites, facts.writing_sites, [indices, scratch, own])
    if facts.host_calls:
        worker.host = HostCalls(state, worker)
    return worker
