"""The blocks that a worker holds at once: memory of their own for each, made when it is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.records import BARRIERS, Barrier, Context, Slot, Warp
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.host_memory import aligned, records
from triptych.gpu.run.kernel import Kernel

HELD_BYTES = 1 << 30
"""Memory of the blocks that all workers of a launch hold at once."""


def slot_bytes(kernel: Kernel, geometry: Geometry) -> int:
    """Host memory that it takes to hold a block."""
    threads = geometry.warps * WARP_SIZE
    own = kernel.facts.frame_bytes + Warp.size()
    return geometry.shared_bytes + geometry.local_stride * threads + own * geometry.warps


@dataclass(slots=True)
class Slots:
    """A worker's slots; they own the memory that their records point to."""

    rows: NDArray[np.int64]
    """A `Slot` each."""
    warps: list[NDArray[np.int64]]
    """The warps of each slot's block, a `Warp` each."""
    barriers: list[NDArray[np.int64]]
    owned: list[Any] = field(default_factory=list[Any])


def add_slots(slots: Slots | None, count: int, kernel: Kernel, geometry: Geometry, context: Context) -> Slots:
    """Slots for `count` blocks, those that are there already included; the context learns of them."""
    there = 0 if slots is None else len(slots.rows)
    rows = records(count, Slot.size() // 8)
    if slots is None:
        slots = Slots(rows, [], [])
    else:
        rows[:there] = slots.rows
        slots.owned.append(slots.rows)
        slots.rows = rows
    for row in rows[there:]:
        for name, value in _make_slot(slots, kernel, geometry).items():
            row[Slot.position(name)] = value
    context.slots, context.slot_count = rows.ctypes.data, count
    return slots


def _make_slot(slots: Slots, kernel: Kernel, geometry: Geometry) -> dict[str, int]:
    shared = aligned(geometry.shared_bytes)
    local = aligned(geometry.local_stride * geometry.warps * WARP_SIZE)
    frames = aligned(kernel.facts.frame_bytes * geometry.warps)
    warps = records(geometry.warps, Warp.size() // 8)
    barriers = records(BARRIERS, Barrier.size() // 8)
    numbers = np.arange(geometry.warps)
    warps[:, Warp.position("index")] = numbers
    warps[:, Warp.position("frame")] = frames.ctypes.data + numbers * kernel.facts.frame_bytes
    slots.warps.append(warps)
    slots.barriers.append(barriers)
    slots.owned += [shared, local, frames]
    memory = {"shared": shared, "local": local, "warps": warps, "barriers": barriers}
    return {"block_index": -1} | {name: array.ctypes.data for name, array in memory.items()}


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
