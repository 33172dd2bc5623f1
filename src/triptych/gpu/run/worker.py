"""What generated code reads and writes while it runs: what a launch's workers share, and the structures of each."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.hardware import RESERVED_SHARED_END, WARP_SIZE
from triptych.gpu.lower.linked_units import load_cluster_hooks
from triptych.gpu.lower.records import NO_STOP, SCRATCH_BYTES, Context, Site, Slot
from triptych.gpu.lower.watching.layout import place_memory
from triptych.gpu.lower.watching.records import HAZARDS_KEPT, Hazard
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.host_calls import HostCalls
from triptych.gpu.run.host_memory import aligned, records
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.passed import Passed
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.slots import Slots, add_slots
from triptych.gpu.run.storage_table import StorageTable


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
    standing: frozenset[int]
    """See `KernelFacts`."""
    hazards: NDArray[np.int64]
    """A `Hazard` each: what asynccheck saw, of which the context knows how many there are."""
    owned: list[Any] = field(default_factory=list[Any])
    is_done: bool = False
    host: HostCalls | None = None
    """Where the kernel calls functions of the host."""

    def count_doings(self) -> int:
        """A number that changes when the worker does more than wait."""
        written = self.sites[self.writing]
        requests = (written[:, Site.position(name)].sum() for name in ("requests", "contiguous", "broadcast"))
        return self.context.progress + int(sum(requests))


@dataclass(slots=True, kw_only=True)
class LaunchState:
    """What all workers of a launch share."""

    geometry: Geometry
    table: StorageTable
    parameters: NDArray[np.uint8]
    symbols: NDArray[np.int64]
    budget: int
    most_held: int
    """Blocks that all workers together may hold at once: whole clusters."""
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
        "local_stride": geometry.local_stride,
        "cleared_bytes": RESERVED_SHARED_END if facts.layout.shared_start else 0,
        "sites": sites.ctypes.data, "site_count": len(sites),
        "counts": counts.ctypes.data,
        "budget": state.budget, "converged": kernel.code("converged").form,
        "masked": kernel.known_code("masked"), "storages": state.table.rows.ctypes.data,
        "storage_count": len(state.table.storages), "symbols": state.symbols.ctypes.data,
        "scratch": scratch.ctypes.data,
        "cluster_size": geometry.cluster_size, "explicit_cluster": int(geometry.explicit_cluster),
        "envreg_1": state.grid_workspace >> 32, "envreg_2": state.grid_workspace & 0xFFFF_FFFF,
    }  # fmt: skip
    hazards = records(HAZARDS_KEPT if kernel.watched else 0, Hazard.size() // 8)
    if kernel.watched is not None:
        _, places = place_memory(kernel.watched.granule, geometry.shared_bytes, geometry.warps)
        values |= {**places, "hazards": hazards.ctypes.data}
    for axis, extent, size, part in zip("xyz", geometry.grid, geometry.block, geometry.cluster, strict=True):
        values[f"nctaid_{axis}"], values[f"ntid_{axis}"], values[f"cluster_{axis}"] = extent, size, part
    values |= load_cluster_hooks(kernel.linked, geometry.cluster_size)
    for name, value in values.items():
        setattr(context, name, value)
    whole = geometry.cluster_size
    context.wanted, context.slot_limit = whole, -(-state.most_held // (workers * whole)) * whole
    slots = add_slots(None, whole, kernel, geometry, context)
    for name in Slot.names():
        setattr(context, name, int(slots.rows[0, Slot.position(name)]))
    owned = [indices, scratch, own]
    worker = Worker(context, slots, counts, sites, facts.writing_sites, facts.standing, hazards, owned)
    if facts.host_calls:
        worker.host = HostCalls(state, worker)
    return worker
