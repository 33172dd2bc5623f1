"""The structures that Python and generated code share, declared once as ctypes and read by name from both sides.

Every field is 8 bytes wide, so that a field's index is its position.
"""

from __future__ import annotations

import ctypes

from triptych.gpu.hardware import WARP_SIZE

NO_STOP = (1 << 63) - 1
"""`stop_block` while nothing stops the launch."""

EXITED = 0x7FFF_FFFF
"""A lane's next block once it has ended."""
GRANULE_BYTES = 64
"""Allocations of the heap start at a multiple of this: two never share a pair of sectors. So what an access counts does
not depend on which thread allocated first."""
SCRATCH_BYTES = 1024
"""A worker's memory for the vectors of one access: 32 lanes of at most 32 bytes."""
WAITING = 0x4000_0000
"""Added to a lane's next block while it waits at a block barrier, the barrier's number above `BARRIER_SHIFT`."""
BARRIER_SHIFT = 24
WRAPPED = 0x2000_0000
"""Added to a block's number where its turn comes after those from the warp's `offset` on."""
BARRIERS = 16
"""Named barriers of a block (PTX manual, 9.7.13.1)."""
PATIENCE = 64
"""Iterations of waiting loops that a warp runs before it lets others run."""


class Status:
    """What a warp does between two runs of its code."""

    READY = 0
    WAITING = 1
    """At barriers of the block."""
    DONE = 2


class Outcome:
    """Why a warp's code returned to the scheduler."""

    DONE = 0
    BARRIER = 1
    """All its live lanes wait for others."""
    DIVERGED = 2
    CONVERGED = 3
    STOPPED = 4
    YIELDED = 5
    """It waits in a loop; others may run."""


class Need:
    """Why the scheduler returned to Python."""

    NOTHING = 0
    MASKED_FORM = 1
    SLOTS = 2
    """Room for more blocks, so that those that are held and wait need not be all."""
    PATIENCE = 3
    """All blocks that this worker holds wait in loops, and it may not take more."""


class FaultKind:
    """What a fault is; 0 is none."""

    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    READ_ONLY = 3
    SHARED_BOUNDS = 4
    LOCAL_BOUNDS = 5
    BUDGET = 6
    TRAP = 7
    BARRIER_NUMBER = 8
    BARRIER_THREADS = 9
    BARRIER_MISMATCH = 10
    DEADLOCK = 11
    HANG = 12
    HOST_CALL = 13


class Record(ctypes.Structure):
    """A structure whose fields are all 8 bytes wide."""

    @classmethod
    def position(cls, name: str) -> int:
        """The position of a field."""
        offset: int = getattr(cls, name).offset
        return offset // 8

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields."""
        return tuple(field[0] for field in cls._fields_)

    @classmethod
    def size(cls) -> int:
        """Bytes of the structure."""
        return ctypes.sizeof(cls)


def _fields(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_int64) for name in names.split()]


_BLOCK_FIELDS = "block_index ctaid_x ctaid_y ctaid_z shared local warps barriers arrivals"


class Slot(Record):
    """A block that a worker holds while another runs: what of the context is the block's. Free: `block_index` < 0."""

    _fields_ = _fields(_BLOCK_FIELDS)


class Context(Record):
    """One worker's view of a launch.

    `arrivals` are the barriers at which threads of the block have arrived, as bits. Of the `slot_count` slots, `wanted`
    may be in use, at most `slot_limit`; the block that runs is that of slot `cursor`. `progress` counts what shows that
    the worker does not only wait: blocks and warps that ended, barriers that completed. `spins` counts the iterations
    of loops that waited.
    """

    _fields_ = _fields(
        f"{_BLOCK_FIELDS} next_block total_blocks nctaid_x nctaid_y nctaid_z ntid_x ntid_y ntid_z"
        " threads warp_count thread_indices index_stride parameters shared_size local_size"
        " sites block_counts divergent_counts stop_block budget converged masked storages"
        " storage_count symbols warp_index fault_kind fault_site fault_address fault_lane fault_warp"
        " fault_block done_blocks fault_size scratch site_count"
        " slots slot_count slot_limit wanted cursor held progress turn_progress idle_turns spins"
        " envreg_1 envreg_2 host_call"
    )


class Warp(Record):
    """A warp between two runs of its code.

    `fuel` counts its loop iterations down to the next look at the stop flag; `spent` are those before. `patience`
    counts those of waiting loops down to the next yield. Parted lanes at blocks from `offset` on run before the others.
    `barrier` is where all live lanes wait while they are together. `results` says for each lane that waits for a
    reduction what it wants and where in the frame that goes (`barriers.COUNT`), or -1. `clock` is what
    clock registers last said.
    """

    _fields_ = [
        *_fields("status resume mask index frame fuel spent mode patience offset barrier clock"),
        *((f"next_blocks_{i}", ctypes.c_int64) for i in range(WARP_SIZE // 2)),
        *((f"results_{i}", ctypes.c_int64) for i in range(WARP_SIZE // 2)),
    ]


class Barrier(Record):
    """A block's barrier between two completions; meaningless unless the block's `arrivals` name it.

    `arrived` counts threads, those of whole warps by full warps; `threads` is how many complete it, 0 all live ones.
    """

    _fields_ = _fields("arrived live threads reduces count every any line")


class Site(Record):
    """One memory instruction's last match among the storages, and its counters.

    `contiguous` and `broadcast` count the requests of full warps that the short ways served: neighbouring elements
    from a sector's start on, and one element for all lanes. All other requests count into the fields before them.
    `left_view` is the first address that it reached for outside of what the launch passed of a storage, 0 for none.
    """

    _fields_ = _fields("low high delta touched requests sectors bytes conflicts contiguous broadcast left_view")


class StorageRow(Record):
    """A storage as generated code searches it: sorted by `low`; maps are biased by the pair's number.

    `view_low` and `view_high` bound what the launch passed of it; the whole where it passed nothing of it.
    `parts` is 0, or where the first address and the end of what is allocated in each granule of it stand.
    """

    _fields_ = _fields("low high view_low view_high delta writable read_map write_map parts")


FUEL = 1 << 16
"""Loop iterations between two looks at the stop flag and the budget."""
