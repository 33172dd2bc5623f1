"""The blocks that a worker holds at once: memory of their own for each, made when it is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.hardware import BARRIERS, WARP_SIZE
from triptych.gpu.lower.records import Barrier, Context, Slot, Warp
from triptych.gpu.lower.watching.layout import place_memory
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.host_memory import address_of, aligned, records
from triptych.gpu.run.kernel import Kernel

HELD_BYTES = 1 << 30
"""Memory of the blocks that all workers of a launch hold at once."""


def slot_bytes(kernel: Kernel, geometry: Geometry) -> int:
    """Host memory that it takes to hold a block."""
    return sum(_parts_of(kernel, geometry).values())


def _parts_of(kernel: Kernel, geometry: Geometry) -> dict[str, int]:
    """What a block has for itself, in bytes: memory, registers of parted lanes, and the records of its slot."""
    watched = kernel.watched
    shared = geometry.shared_bytes
    if watched is not None:
        shared, _ = place_memory(watched.granule, shared, geometry.warps)
    return {
        "shared": shared, "local": geometry.local_stride * geometry.warps * WARP_SIZE,
        "frames": kernel.facts.frame_bytes * geometry.warps,
        "warps": Warp.size() * geometry.warps, "barriers": Barrier.size() * BARRIERS,
    }  # fmt: skip


@dataclass(slots=True)
class Slots:
    """A worker's slots; they own the memory that their records point to."""

    rows: NDArray[np.int64]
    """A `Slot` each."""
    warps: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])
    """The warps of each slot's block, a `Warp` each."""
    barriers: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])
    owned: list[Any] = field(default_factory=list[Any])


def fill_slots(slots: Slots, kernel: Kernel, geometry: Geometry, context: Context) -> None:
    """Gives memory to slots that have none yet; the context learns of them."""
    for row in slots.rows[len(slots.warps) :]:
        for name, value in _make_slot(slots, kernel, geometry).items():
            row[Slot.position(name)] = value
    context.slots, context.slot_count = address_of(slots.rows), len(slots.rows)


def add_slots(slots: Slots, count: int, kernel: Kernel, geometry: Geometry, context: Context) -> None:
    """Slots for `count` blocks, those that are there already included."""
    rows = records(count, Slot.size() // 8)
    rows[: len(slots.rows)] = slots.rows
    slots.owned.append(slots.rows)
    slots.rows = rows
    fill_slots(slots, kernel, geometry, context)


def _make_slot(slots: Slots, kernel: Kernel, geometry: Geometry) -> dict[str, int]:
    parts = {name: aligned(size) for name, size in _parts_of(kernel, geometry).items()}
    warps, barriers = (parts[name].view(np.int64) for name in ("warps", "barriers"))
    warps[:], barriers[:] = 0, 0
    slots.warps.append(warps.reshape(geometry.warps, -1))
    slots.barriers.append(barriers.reshape(BARRIERS, -1))
    numbers = np.arange(geometry.warps)
    slots.warps[-1][:, Warp.position("index")] = numbers
    slots.warps[-1][:, Warp.position("frame")] = parts["frames"].ctypes.data + numbers * kernel.facts.frame_bytes
    slots.owned += parts.values()
    return {"block_index": -1, **{name: parts[name].ctypes.data for name in parts.keys() & Slot.STARTS.keys()}}


def held_blocks(slots: Slots, context: Context) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """The blocks that a worker holds, ascending: number, warps and barriers. A fault's block is among them."""
    found: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
    for number, row in enumerate(slots.rows):
        index = int(row[Slot.position("block_index")])
        if number == context.cursor:
            index = context.fault_block if context.fault_kind else context.block_index
        if index >= 0:
            found.append((index, slots.warps[number], slots.barriers[number]))
    return sorted(found, key=lambda block: block[0])
