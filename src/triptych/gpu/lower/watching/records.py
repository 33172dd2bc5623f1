"""What asynccheck keeps while a block runs, as Python and generated code share it: copies, readers, groups, hazards."""

from __future__ import annotations

from enum import IntEnum

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.records import Record, fields_of

COPIES_KEPT = 1024
"""The latest copies into a block's shared memory that are kept; older ones count as complete. A power of two."""
REGIONS = 32
"""Of a block's shared memory, at most."""
READS_KEPT = 128
"""Readers of a block's shared memory that are kept at once; others count as done."""


class Completion(IntEnum):
    """What shows that an asynchronous copy is complete, or that what it reads has been read."""

    GROUP = 1
    """Its thread waited for the group of `cp.async` that it is in, or its mbarrier's phase was waited for."""
    MBARRIER = 2
    """Some thread saw that the phase of the mbarrier ended."""
    BULK_GROUP = 3
    """Its thread waited for the group of bulk copies that it is in."""
    PRODUCT_GROUP = 4
    """A warp of its warpgroup waited for the group of multiplications that it is in."""


class Pending(Record):
    """An asynchronous copy into a block's shared memory, or an asynchronous reader of it, as asynccheck knows it.

    `site` is the address of its memory site, `completion` a `Completion`; the block, the warp and the lane issued it,
    or those of `lanes`, which are bits. `amount` is its group, or its mbarrier's phase, and `place` the mbarrier's, of
    the host. `number` counts a block's copies, `next` is that of the next one in a list. From `low` below `high` lies
    what it writes or reads; of a matrix only the rows that `descriptor`, `lines` (pieces of it) and `by_k` say.
    """

    _fields_ = fields_of(
        "site completion block warp lane amount place number next lanes low high", "descriptor lines by_k"
    )


class Arrival(Record):
    """An mbarrier that is told when the `cp.async` of some lanes are complete: those with numbers below `number`."""

    _fields_ = fields_of("lanes place amount number")


ARRIVALS_KEPT = 32
"""The latest `Arrival`s that are kept of a warp."""


class WatchedWarp(Record):
    """What asynccheck knows of a warp: each lane's groups (i32), committed and waited for; those of multiplications.

    `products_done` is that of the warpgroup's first warp. `first` and `last` are a list of its copies. Behind it lie
    `ARRIVALS_KEPT` times an `Arrival`, of which `arrivals` were made.
    """

    _fields_ = fields_of(
        *(f"{name}_{i}" for name in ("groups", "groups_done", "bulk", "bulk_done") for i in range(WARP_SIZE // 2)),
        "products products_done arrivals first last",
    )


class WatchedBlock(Record):
    """How many copies into a block's shared memory were issued, and how many readers of it are not done.

    Shared memory consists of 32 regions at most. `pending` names those that copies may still write, as bits, `reading`
    those that may still be read, and `closed` both; `counts` (i32) are the copies into each. `first` and `last` are a
    list of the copies that mbarriers tell of; `tells` is not 0 where such are told of copies of threads.
    """

    _fields_ = fields_of(
        "copies reads first last tells pending reading closed", *(f"counts_{i}" for i in range(REGIONS // 2))
    )


class HazardKind(IntEnum):
    """What a thread did to shared memory too early."""

    READ = 1
    """It read what a copy may not have written yet."""
    WRITE = 2
    """It wrote where a copy may still write."""
    OVERWRITE = 3
    """It wrote where an asynchronous reader may still read."""


class Hazard(Record):
    """The first of a kind between two instructions, those of the memory sites `site` and `other`.

    The latter's fields are those of its `Pending`; `committed` is how many groups its thread had committed.
    """

    _fields_ = fields_of(
        "kind site block warp lane address other completion other_block other_warp other_lane amount place committed"
    )


HAZARDS_KEPT = 256
"""Of a worker."""
