"""The structures that Python and generated code share, declared once as ctypes and read by name from both sides.

Every field is 8 bytes wide, so that a field's index is its position.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from functools import cache
from typing import ClassVar

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.asynchronous.mbarrier_object import MbarrierFault

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
PATIENCE = 64
"""Iterations of waiting loops that a warp runs before it lets others run."""


MBARRIER_FAULTS = 40
"""A `FaultKind` of an mbarrier is this and the `MbarrierFault`."""


class Status(IntEnum):
    """What a warp does between two runs of its code."""

    READY = 0
    WAITING = 1
    """At barriers of the block."""
    DONE = 2


class Outcome(IntEnum):
    """Why a warp's code returned to the scheduler."""

    DONE = 0
    BARRIER = 1
    """All its live lanes wait for others."""
    DIVERGED = 2
    CONVERGED = 3
    STOPPED = 4
    YIELDED = 5
    """It waits in a loop; others may run."""


class Need(IntEnum):
    """Why the scheduler returned to Python."""

    NOTHING = 0
    MASKED_FORM = 1
    SLOTS = 2
    """Room for more blocks, so that those that are held and wait need not be all."""
    PATIENCE = 3
    """All blocks that this worker holds wait in loops, and it may not take more."""


class FaultKind(IntEnum):
    """What a fault is, as generated code says it; 0 is none. `check/faults.py` has for each what tells it."""

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
    CLUSTER_BOUNDS = 14
    CLUSTER_RANK = 15
    CLUSTER_EXITED = 16
    CLUSTER_ARRIVAL = 17
    CLUSTER_WAIT = 18
    DIVERGENT_WARP = 19
    ATOMIC_IN_LOCAL = 20
    LAUNCH_BUDGET = 21
    # An mbarrier's, in the order of `MbarrierFault`.
    MBARRIER_NO_OBJECT = MBARRIER_FAULTS + MbarrierFault.NO_OBJECT
    MBARRIER_INVALIDATED = MBARRIER_FAULTS + MbarrierFault.INVALIDATED
    MBARRIER_COUNT = MBARRIER_FAULTS + MbarrierFault.COUNT
    MBARRIER_ARRIVALS = MBARRIER_FAULTS + MbarrierFault.ARRIVALS
    MBARRIER_TRANSACTIONS = MBARRIER_FAULTS + MbarrierFault.TRANSACTIONS
    MBARRIER_COMPLETES = MBARRIER_FAULTS + MbarrierFault.COMPLETES
    BULK_SIZE = 50
    BULK_ALIGNMENT = 51
    TENSOR_MAP = 52
    """The detail is a `TensorMapFault`, the size the number that is wrong."""
    MATRIX_DESCRIPTOR = 53
    """The detail is a `DescriptorFault`, the address the descriptor."""


class Start(Enum):
    """What a field begins with where that is no constant."""

    GIVEN = auto()
    """What whoever begins gives."""
    KEPT = auto()
    """What it held: it is made once, or not looked at before it is written."""


Starts = Mapping[str, int | Start]


class Record(ctypes.Structure):
    """A structure whose fields are all 8 bytes wide."""

    STARTS: ClassVar[Starts] = {}
    """What fields hold when a new block, or a new use, begins: generated code resets by it (`Emitter.start_record`)."""

    @classmethod
    @cache
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


def fields_of(*names: str) -> list[tuple[str, type]]:
    """Fields by their names, several in a string or one."""
    return [(name, ctypes.c_int64) for several in names for name in several.split()]


class Slot(Record):
    """A block that a worker holds while another runs: what of the context is the block's. Free: `block_index` < 0."""

    STARTS: ClassVar[Starts] = {
        "block_index": Start.GIVEN, "ctaid_x": Start.GIVEN, "ctaid_y": Start.GIVEN, "ctaid_z": Start.GIVEN,
        "shared": Start.KEPT, "local": Start.KEPT, "warps": Start.KEPT, "barriers": Start.KEPT, "arrivals": 0,
    }  # fmt: skip
    _fields_ = fields_of(*STARTS)


MEMORY_SIZES = ("storage_count", "shared_size", "local_size")
"""What of the context says how much memory there is: all 0, accesses find none."""


class Context(Record):
    """One worker's view of a launch.

    `arrivals` are the barriers at which threads of the block have arrived, as bits. Of the `slot_count` slots, `wanted`
    may be in use, at most `slot_limit`; the block that runs is that of slot `cursor`. `progress` counts what shows that
    the worker does not only wait: blocks and warps that ended, barriers that completed. `spins` counts the iterations
    of loops that waited. Of a new block's shared memory the first `cleared_bytes` are 0; the others are
    `undefined_byte`, and so is local memory. The n-th cluster that runs is the grid's `first_cluster` + n ·
    `cluster_step`. `launch_spent` counts against `launch_budget` (0: none); `charged` is what it has of the warp that
    runs.
    """

    STARTS: ClassVar[Starts] = Slot.STARTS
    _fields_ = fields_of(
        *Slot.STARTS, *MEMORY_SIZES,
        # The launch's: the same for all its blocks.
        "next_block total_blocks nctaid_x nctaid_y nctaid_z ntid_x ntid_y ntid_z threads warp_count thread_indices",
        "local_stride",
        "index_stride parameters stop_block budget converged masked storages symbols envreg_1 envreg_2 host_call",
        "cleared_bytes undefined_byte first_cluster cluster_step launch_budget",
        "cluster_x cluster_y cluster_z cluster_size explicit_cluster",
        "room_for_cluster start_cluster settle_cluster some_ready",  # addresses: see `clusters.HOOKS`
        # What asynccheck keeps of a block, by the distance from its shared memory (`watching/layout.py`); 0: nothing.
        "watched_phases watched_warps watched_tags watched_copies watched_reads watched_bytes watched_shift",
        "watched_region",
        # The worker's: they go on from block to block.
        "sites site_count counts scratch warp_index slots slot_count slot_limit wanted cursor held done_blocks",
        "progress turn_progress idle_turns spins hazards hazard_count launch_spent charged",
        # Its first fault, as `services.record_fault` says.
        "fault_kind fault_block fault_warp fault_lane fault_place fault_detail fault_site fault_address fault_size",
    )  # fmt: skip


class Warp(Record):
    """A warp between two runs of its code.

    `fuel` counts its loop iterations down to the next look at the stop flag; `spent` are those before. `patience`
    counts those of waiting loops down to the next yield. Parted lanes at blocks from `offset` on run before the others.
    `barrier` is where all live lanes wait while they are together. `results` says for each lane that waits for a
    reduction what it wants and where in the frame that goes (`barriers.COUNT`), or -1. `clock` is what
    clock registers last said. `cluster_arrived` are the lanes that have arrived at the cluster's barrier since it last
    completed, `cluster_owing` those that have and not waited yet. `has_tiles` is 0 while sums of matrices that the
    converged form keeps as tiles lie in the frame as registers.
    """

    STARTS: ClassVar[Starts] = {
        "status": Status.READY, "resume": 0, "mask": Start.GIVEN, "index": Start.KEPT, "frame": Start.KEPT,
        "fuel": Start.GIVEN, "spent": 0, "mode": 0, "patience": PATIENCE, "offset": 0, "barrier": Start.KEPT,
        "clock": 0, "cluster_arrived": 0, "cluster_owing": 0, "has_tiles": 1,
        **dict.fromkeys((f"next_blocks_{i}" for i in range(WARP_SIZE // 2)), Start.KEPT),
        **dict.fromkeys((f"results_{i}" for i in range(WARP_SIZE // 2)), Start.KEPT),
    }  # fmt: skip
    _fields_ = fields_of(*STARTS)


class Barrier(Record):
    """A block's barrier between two completions; meaningless unless the block's `arrivals` name it.

    `arrived` counts threads, those of whole warps by full warps; `threads` is how many complete it, 0 all live ones.
    """

    STARTS: ClassVar[Starts] = {
        "arrived": 0, "live": 0, "threads": Start.GIVEN, "reduces": 0, "count": 0, "every": 1, "any": 0,
        "place": Start.GIVEN,
    }  # fmt: skip
    _fields_ = fields_of(*STARTS)


class Site(Record):
    """One memory instruction's last match among the storages, and its counters.

    `contiguous` and `broadcast` count the requests of full warps that the short ways served: neighbouring elements
    from a sector's start on, and one element for all lanes. All other requests count into the fields before them.
    `left_view` is the first address that it reached for outside of what the launch passed of a storage, 0 for none.
    """

    _fields_ = fields_of("low high delta touched requests sectors bytes conflicts contiguous broadcast left_view")


class AsyncCopy(Record):
    """A bulk copy that a thread asked for: all that it takes to perform it.

    `target`, `source` and `barrier` are addresses of the copy's spaces, `blocks` the ranks of a multicast as bits.
    """

    _fields_ = fields_of("lane target source bytes barrier blocks")


class TensorRequest(Record):
    """A copy of a box of a tensor that a thread asked for: all that it takes to perform it.

    `how` is what the instruction says (`tensor_copies.tensor_copy_code`), `tensor_map` a generic address; `shared` and
    `barrier` are those of shared memory, and may name a block. Coordinates are those of the innermost axis first.
    """

    _fields_ = fields_of("how lane tensor_map shared barrier blocks x0 x1 x2 x3 x4 offset1 offset2 offset3")


class MisuseKind(IntEnum):
    """What a lane did at an instruction that names lanes of its warp."""

    OUTSIDE = 1
    """Its own mask does not name it."""
    SOURCE = 2
    """It reads a lane that does not take part."""


@dataclass(frozen=True, slots=True, order=True)
class Misuse:
    """The first misuse of an instruction that names lanes, in the order of its fields; kept as one number above 0."""

    block: int
    warp: int
    kind: int
    """A `MisuseKind`."""
    lane: int
    source: int
    """The lane that it reads."""

    BITS: ClassVar[Mapping[str, int]] = {"block": 46, "warp": 5, "kind": 2, "lane": 5, "source": 5}
    """Of each field, the highest first."""

    @classmethod
    def of(cls, number: int) -> Misuse:
        """What generated code kept."""
        values: dict[str, int] = {}
        for name, bits in reversed(list(cls.BITS.items())):
            values[name] = number & ((1 << bits) - 1)
            number >>= bits
        return cls(**values)


@dataclass(frozen=True, slots=True)
class CountLayout:
    """Where each of a worker's counts stands among all, 8 bytes each: the only place that says so.

    Executions come first, each with its lanes, then guarded instructions, partings of lanes, a `Misuse` (no count) of
    each instruction that names lanes, and the sites.
    """

    executions: int
    """What is executed as one and counted as such: blocks, and ranges of them."""
    guards: int
    """Guarded instructions whose lanes are counted."""
    namings: int
    """Instructions that name lanes of their warp."""
    sites: int

    def warps(self, execution: int) -> int:
        """How often it was executed."""
        return 2 * execution

    def lanes(self, execution: int) -> int:
        """Lanes over all executions."""
        return 2 * execution + 1

    def guarded(self, guard: int) -> int:
        """Lanes over all executions of a guarded instruction in which the guard held."""
        return 2 * self.executions + guard

    def divergent(self, execution: int) -> int:
        """Times that lanes parted at its end."""
        return 2 * self.executions + self.guards + execution

    def misuse(self, naming: int) -> int:
        """The first `Misuse` of an instruction that names lanes, 0 for none."""
        return 3 * self.executions + self.guards + naming

    def site(self, index: int, field: str = "low") -> int:
        """A field of a memory site, whose record begins with `low`."""
        before = 3 * self.executions + self.guards + self.namings
        return before + index * Site.size() // 8 + Site.position(field)

    @property
    def size(self) -> int:
        """How many counts there are."""
        return self.site(self.sites)


class StorageRow(Record):
    """A storage as generated code searches it: sorted by `low`; maps are biased by the pair's number.

    `view_low` and `view_high` bound what the launch passed of it; 0 where no access beside that is to be noted.
    `parts` is 0, or where the first address and the end of what is allocated in each granule of it stand.
    """

    _fields_ = fields_of("low high view_low view_high delta writable read_map write_map parts")


FUEL = 1 << 16
"""Loop iterations between two looks at the stop flag and the budget."""
