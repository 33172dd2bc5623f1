"""What generated code reads and writes while it runs: what a launch's workers share, and the structures of each."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.plan import Launch
from triptych.gpu.hardware import RESERVED_SHARED_END, WARP_SIZE
from triptych.gpu.lower.linked_units import load_cluster_hooks
from triptych.gpu.lower.records import NO_STOP, SCRATCH_BYTES, Context, Site, Slot
from triptych.gpu.lower.watching.layout import place_memory
from triptych.gpu.lower.watching.records import HAZARDS_KEPT, Hazard
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.host_calls import HostCalls
from triptych.gpu.run.host_memory import address_of, aligned, records
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.passed import Passed, passed_arrays, passed_nulls
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.slots import Slots, fill_slots
from triptych.gpu.run.storage_table import StorageTable

_REQUESTS = [Site.position(name) for name in ("requests", "contiguous", "broadcast")]


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
    unused: bytes
    """The context, the slots' records and the counts as they are before a launch; they lie behind each other."""
    owned: list[Any] = field(default_factory=list[Any])
    is_done: bool = False
    waits_for_code: bool = False
    """Whether it needs a form of the kernel that is being made."""
    host: HostCalls | None = None
    """Where the kernel calls functions of the host."""

    def count_doings(self) -> int:
        """A number that changes when the worker does more than wait."""
        written = self.sites[self.writing]
        requests = (written[:, place].sum() for place in _REQUESTS)
        return self.context.progress + int(sum(requests))

    @property
    def is_reusable(self) -> bool:
        """Whether it holds no more slots than it began with."""
        return len(self.slots.rows) == self.context.cluster_size

    def begin(self, kernel: Kernel, state: LaunchState, workers: int) -> None:
        """Takes part in a launch, as one of several workers; nothing is left of what it did before.

        The kernel has its code by then.
        """
        context, whole, table = self.context, state.geometry.cluster_size, state.table
        ctypes.memmove(ctypes.addressof(context), self.unused, len(self.unused))
        self.is_done = False
        context.next_block = ctypes.addressof(state.next_block)
        context.stop_block = ctypes.addressof(state.stop_block)
        context.storages, context.parameters = table.places
        context.storage_count, context.symbols = len(table.storages), state.symbols
        context.budget, context.launch_budget = state.budget, state.launch_budget or 0
        context.undefined_byte = state.undefined_byte
        context.converged, context.masked = kernel.known_code("converged"), kernel.known_code("masked")
        context.envreg_1, context.envreg_2 = state.grid_workspace >> 32, state.grid_workspace & 0xFFFF_FFFF
        context.slot_limit = -(-state.most_held // (workers * whole)) * whole
        self.host = HostCalls(state, self) if kernel.facts.host_calls else None


@dataclass(slots=True, kw_only=True)
class LaunchState:
    """What all workers of a launch share."""

    launch: Launch
    geometry: Geometry
    table: StorageTable
    symbols: int
    """The host's address of the table of variables' addresses."""
    budget: int
    launch_budget: int | None
    """What all its warps may run together."""
    undefined_byte: int
    most_held: int
    """Blocks that all workers together may hold at once: whole clusters."""
    grid_workspace: int
    """The address of what grid-wide barriers count in, 0 where the launch is not cooperative."""
    heap: DeviceHeap | None
    """Where the kernel may allocate, or reach what another one has allocated."""
    printed: PrintedText
    next_block: Any = field(default_factory=ctypes.c_int64)
    stop_block: Any = field(default_factory=lambda: ctypes.c_int64(NO_STOP))

    @property
    def last_block(self) -> int:
        """The last block that runs to its end, or to its fault."""
        return self.stop_block.value + 1

    @property
    def argument_of(self) -> Mapping[str, Passed]:
        """The kernel's argument that each storage was first passed as, by the storage's name."""
        return passed_arrays(self.launch)

    @property
    def null_arguments(self) -> Mapping[int, str]:
        """What may be a null pointer, by its place among the arguments, as messages call it."""
        return passed_nulls(self.launch)


def make_worker(kernel: Kernel, geometry: Geometry) -> Worker:
    """A worker for launches in a shape, with all that its context points to and that is not a launch's own."""
    facts = kernel.facts
    indices = thread_indices(geometry)
    layout = facts.counts
    whole = geometry.cluster_size
    parts = Context.size() // 8, whole * Slot.size() // 8, layout.size
    own = records(1, sum(parts))[0]
    rows, counts = own[parts[0] : sum(parts[:2])].reshape(whole, -1), own[sum(parts[:2]) :]
    sites = counts[layout.site(0) :].reshape(layout.sites, Site.size() // 8)
    sites[:, Site.position("low")] = 1  # an empty range: the first access looks its storage up
    scratch = aligned(SCRATCH_BYTES)
    context = Context.from_address(address_of(own))
    values = {
        "total_blocks": geometry.blocks, "threads": geometry.threads, "warp_count": geometry.warps,
        "thread_indices": indices.ctypes.data, "index_stride": indices.shape[1],
        "shared_size": geometry.shared_bytes, "local_size": geometry.local_bytes,
        "local_stride": geometry.local_stride,
        "cleared_bytes": RESERVED_SHARED_END if facts.layout.shared_start else 0,
        "sites": sites.ctypes.data, "site_count": len(sites), "counts": counts.ctypes.data,
        "scratch": scratch.ctypes.data,
        "first_cluster": 0 if geometry.order is None else geometry.order.start,
        "cluster_step": 1 if geometry.order is None else geometry.order.step,
        "cluster_size": whole, "explicit_cluster": int(geometry.explicit_cluster), "wanted": whole,
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
    slots = Slots(rows)
    fill_slots(slots, kernel, geometry, context)
    for name in Slot.names():
        setattr(context, name, int(slots.rows[0, Slot.position(name)]))
    return Worker(
        context, slots, counts, sites, facts.writing_sites, facts.standing, hazards,
        own.tobytes(), [indices, scratch, own],
    )  # fmt: skip
