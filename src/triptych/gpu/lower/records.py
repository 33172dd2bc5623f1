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
SCRATCH_BYTES = 1024
"""A worker's memory for the vectors of one access: 32 lanes of at most 32 bytes."""
WAITING = 0x4000_0000
"""Added to a lane's next block while it waits at a block barrier."""


class Outcome:
    """Why a warp's code returned to the scheduler."""

    DONE = 0
    BARRIER = 1
    DIVERGED = 2
    CONVERGED = 3
    STOPPED = 4


class Need:
    """Why the scheduler returned to Python."""

    NOTHING = 0
    MASKED_FORM = 1


class FaultKind:
    """What a fault is; 0 is none."""

    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    READ_ONLY = 3
    SHARED_BOUNDS = 4
    LOCAL_BOUNDS = 5
    BUDGET = 6
    TRAP = 7
    PARTED_WARP = 8


class Record(ctypes.Structure):
    """A structure whose fields are all 8 bytes wide."""

    @classmethod
    def position(cls, name: str) -> int:
        """The position of a field."""
        offset: int = getattr(cls, name).offset
        return offset // 8

    @classmethod
    def size(cls) -> int:
        """Bytes of the structure."""
        return ctypes.sizeof(cls)


def _fields(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_int64) for name in names.split()]


class Context(Record):
    """One worker's view of a launch."""

    _fields_ = _fields(
        "next_block total_blocks block_index ctaid_x ctaid_y ctaid_z nctaid_x nctaid_y nctaid_z ntid_x ntid_y ntid_z"
        " threads warp_count thread_indices index_stride parameters shared shared_size local local_size frames"
        " frame_size warps sites block_counts divergent_counts stop_block budget converged masked storages"
        " storage_count symbols barriers warp_index fault_kind fault_site fault_address fault_lane fault_warp"
        " fault_block done_blocks fault_size scratch"
        " site_count"
    )


class Warp(Record):
    """A warp between two runs of its code.

    `fuel` counts its loop iterations down to the next look at the stop flag; `spent` are those before.
    """

    _fields_ = [
        *_fields("status resume mask index frame fuel spent mode"),
        *((f"next_blocks_{i}", ctypes.c_int64) for i in range(WARP_SIZE // 2)),
    ]


class Site(Record):
    """One memory instruction's last match among the storages, and its counters.

    `contiguous` and `broadcast` count the requests of full warps that the short ways served: neighbouring elements
    from a sector's start on, and one element for all lanes. All other requests count into the fields before them.
    """

    _fields_ = _fields("low high delta touched requests sectors bytes conflicts contiguous broadcast")


class StorageRow(Record):
    """A storage as generated code searches it: sorted by `low`; maps are biased by the pair's number."""

    _fields_ = _fields("low high delta writable read_map write_map")


FUEL = 1 << 16
"""Loop iterations between two looks at the stop flag and the budget."""
