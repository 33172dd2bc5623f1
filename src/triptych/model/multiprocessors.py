"""What a launch asks of a GPU's multiprocessors, as roofs: only those that have a block do any of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from triptych.chips import GpuChip
from triptych.core.counters import known_counters
from triptych.core.gpu_facts import BANK_BYTES, BANKS, WARP_SIZE
from triptych.core.launches import LaunchRecord
from triptych.model.pipes import Work
from triptych.model.roofline import Roof

LATENCY_CLOCKS = 4
"""From one instruction of a warp to the next, which takes its result: CUDA C++ Programming Guide, performance
guidelines, multiprocessor level, of arithmetic on compute capability 7.x; 16 warps of an SM hide it."""
_WAVEFRONTS = known_counters("shared.load.wavefronts", "shared.store.wavefronts", "shared.atomic.wavefronts")
_BESIDE_SHARED = known_counters(
    "local.load.bytes", "local.store.bytes", "local.atomic.bytes",
    "shared.cluster.load.bytes", "shared.cluster.store.bytes", "shared.cluster.atomic.bytes",
)  # fmt: skip
"""Bytes that take wavefronts as well, one for a word of each bank at least: local memory lies in the cache that
shared memory is a part of (CUDA C++ Programming Guide, compute capability 7.x); another block's is another SM's."""


def multiprocessor_roofs(record: LaunchRecord, chip: GpuChip, work: Sequence[Work]) -> Iterator[Roof]:
    """A wavefront a clock and SM, the warp instructions that schedulers can issue, and pipes where some SMs are idle.

    A scheduler issues one instruction a clock where it has LATENCY_CLOCKS warps, and fewer where it has fewer: a warp's
    instructions are supposed to need each other's results, as most do. Loops that wait for mbarriers are left out: how
    often they look depends on the order in which the simulator runs warps.
    """
    blocks = math.prod(record.shape.grid)
    used = min(chip.sm_count, blocks)
    clocks = used * chip.clock_hz
    wavefronts = sum(record.counters.value(name) for name in _WAVEFRONTS) - record.counters.value("waiting.wavefronts")
    wavefronts += -(-sum(int(record.counters.value(name)) for name in _BESIDE_SHARED) // (BANKS * BANK_BYTES))
    yield Roof("L1 and shared memory (wavefronts)", "shared memory", wavefronts, "wavefronts", clocks)
    issued = min(chip.warp_schedulers_per_sm, resident_warps(record, chip) / LATENCY_CLOCKS)
    amount = record.counters.value("instructions.warp") - record.counters.value("waiting.instructions")
    yield Roof("issue (warp instructions)", "issue", amount, "instructions", issued * clocks)
    if used < chip.sm_count:
        for row in work:
            name = f"{row.pipe} pipe, idle SMs left out"
            yield Roof(name, f"{row.pipe}, few SMs", row.flops, "FLOPs", row.peak * used / chip.sm_count)


def resident_warps(record: LaunchRecord, chip: GpuChip) -> float:
    """Warps that an SM with a block holds at a time: the most that the grid, its blocks and their shared memory allow.

    How many registers a thread has is for `ptxas` to say, so it is left out.
    """
    blocks = math.prod(record.shape.grid)
    warps = -(-math.prod(record.shape.block) // WARP_SIZE)
    shared = record.shared_bytes + chip.shared_bytes_reserved_per_block
    places = min(chip.max_warps_per_sm // warps, chip.max_blocks_per_sm, chip.shared_bytes_per_sm // max(shared, 1))
    return warps * min(max(places, 1), blocks / min(chip.sm_count, blocks))
