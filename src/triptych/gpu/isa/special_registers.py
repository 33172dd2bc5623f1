"""The special registers that can be read, a row each (PTX manual, chapter 10); `syntax/names.py` knows all names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from triptych.gpu.hardware import RESERVED_SHARED_BYTES, RESERVED_SHARED_END
from triptych.gpu.isa.types import PRED, U32, U64, ScalarType


class Varies(Enum):
    """How a special register differs among the lanes of a warp."""

    UNIFORM = auto()
    """One value for all."""
    ROW = auto()
    """One value along a row of the block's threads."""
    ALONG_ROW = auto()
    """Ascends by 1 along a row of the block's threads."""
    BY_LANE = auto()
    """Ascends by 1 from lane to lane."""
    LANE = auto()
    """A value of its own in each lane."""
    CLOCK = auto()
    """Another value each time that it is read, so lanes that read it one after another see different ones."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same in all launches: the machine's own design gives it."""

    value: int


@dataclass(frozen=True, slots=True)
class Clock:
    """A warp's clock from a bit on. The machine has no time: the clock starts at 0 with the block and moves by
    `CLOCK_STEP` when it is read, so that it never stands still, and runs can be repeated."""

    first_bit: int = 0


@dataclass(frozen=True, slots=True)
class OfLaunch:
    """What an executor knows of the launch, and of where the thread stands in it."""


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, with its component where it is a vector."""

    name: str
    type: ScalarType
    varies: Varies
    source: Constant | Clock | OfLaunch


CLOCK_STEP = 64
"""How far a clock moves when it is read."""


def _constant(name: str, value: int, t: ScalarType = U32) -> Special:
    return Special(name, t, Varies.UNIFORM, Constant(value))


def _of_launch(name: str, varies: Varies = Varies.UNIFORM) -> Special:
    return Special(name, U32, varies, OfLaunch())


def _clock(name: str, first_bit: int = 0, t: ScalarType = U32) -> Special:
    return Special(name, t, Varies.CLOCK, Clock(first_bit))


CLUSTER_VECTORS = ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
"""The cluster's place in the grid, the clusters of the grid, the block's place in its cluster, the cluster's blocks."""
RESERVED_SHARED: Mapping[str, int] = {
    "%reserved_smem_offset_begin": 0, "%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 0,
    "%reserved_smem_offset_end": RESERVED_SHARED_END, "%reserved_smem_offset_cap": RESERVED_SHARED_BYTES,
}  # fmt: skip
"""Where the system's part of shared memory is: only kernels that ask have it, before what is their own."""

_ROWS = (
    _of_launch("%tid.x", Varies.ALONG_ROW), *(_of_launch(f"%tid.{axis}", Varies.ROW) for axis in "yz"),
    *(_of_launch(f"{vector}.{axis}") for vector in ("%ntid", "%ctaid", "%nctaid") for axis in "xyz"),
    _of_launch("%laneid", Varies.BY_LANE), _of_launch("%warpid"), _of_launch("%nwarpid"),
    *(_of_launch(f"%lanemask_{relation}", Varies.LANE) for relation in ("eq", "le", "lt", "ge", "gt")),
    *(_constant(name, value) for name, value in RESERVED_SHARED.items()),
    _of_launch("%total_smem_size"), _of_launch("%dynamic_smem_size"),
    # The machine has one multiprocessor and runs one grid: blocks differ by %ctaid alone.
    _constant("%smid", 0), _constant("%nsmid", 1), _constant("%gridid", 0, U64),
    # Of a launch that says nothing of clusters each block is one of its own.
    *(_of_launch(f"%{vector}.{axis}") for vector in CLUSTER_VECTORS for axis in "xyz"),
    _of_launch("%cluster_ctarank"), _of_launch("%cluster_nctarank"),
    Special("%is_explicit_cluster", PRED, Varies.UNIFORM, OfLaunch()),
    # A driver fills these in for cooperative launches (1 and 2) and the like.
    *(_of_launch(f"%envreg{number}") if number in (1, 2) else _constant(f"%envreg{number}", 0) for number in range(32)),
    _clock("%clock"), _clock("%clock_hi", 32), _clock("%clock64", 0, U64),
    _clock("%globaltimer", 0, U64), _clock("%globaltimer_lo"), _clock("%globaltimer_hi", 32),
)  # fmt: skip
SPECIALS: Mapping[str, Special] = {special.name: special for special in _ROWS}
"""By name; what the grammar knows without a row here is not supported."""
