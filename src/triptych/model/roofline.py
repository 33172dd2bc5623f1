"""Where a launch lies on a chip's roofline, as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from triptych.core.counter_table import COUNTER_ROW
from triptych.core.counters import Counter
from triptych.model.timing import Timing
from triptych.model.traffic import Level

LAUNCH_OVERHEAD = "launch overhead"
"""What limits a launch that no roof does."""


@dataclass(frozen=True, slots=True)
class Roof:
    """One limit: `amount` of work in `unit` at `rate` units a second takes `seconds`.

    `required` roofs (FLOPs, compulsory bytes) bound every way of doing this work, so the floor is made of them; the
    others (bytes requested of L2, engine occupancy) bound this kernel's way of doing it.
    """

    name: str
    short: str
    """The name without what is counted, for a table."""
    amount: int | float
    unit: str
    rate: float
    required: bool = False

    @property
    def seconds(self) -> float:
        """The time that the work takes at the peak rate."""
        return self.amount / self.rate


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes at one level of memory, and the intensity that they give."""

    level: Level
    bytes: int
    intensity: float
    """FLOP/byte; 0 where there are no FLOPs, infinite where there are FLOPs and no bytes."""
    bytes_per_s: float
    """The level's peak bandwidth."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch on the roofline of a chip. Modelled, from counted work and the chip file's peaks."""

    chip: str
    flops: int
    bytes: int
    """At `memory_level`: reads and writes."""
    memory_level: str
    """The headline level's label."""
    intensity: float
    """FLOP/byte at `memory_level`; 0 where there are no FLOPs, infinite where there are FLOPs and no bytes."""
    ridge_point: float
    """FLOP/byte: the peak of the dominant pipe over the bandwidth of `memory_level`."""
    bound: str
    """`memory` left of the ridge point, `compute` right of it."""
    floor_s: float
    """No program that does this work takes less on this chip."""
    estimate_s: float
    """The slowest roof at its peak, after the launch overhead; or the length of the launch's timeline."""
    launch_overhead_s: float
    pipe: str
    """The dominant pipe: the one whose FLOPs take longest."""
    peak_flops_per_s: float
    """Its peak."""
    roofs: tuple[Roof, ...]
    traffic: tuple[Traffic, ...]
    """Every level of memory, that of the headline first."""
    notes: tuple[str, ...]
    timing: Timing | None = None
    """The launch's timeline, where its machine has one (a NeuronCore)."""

    def __repr__(self) -> str:
        """The chip, what binds the launch, and the times in seconds."""
        return (
            f"<on {self.chip}: {self.bound} bound, {self.intensity:.3g} FLOP/byte; floor {self.floor_s:.3g} s,"
            f" estimate {self.estimate_s:.3g} s, limited by {self.limited_by}>"
        )

    @property
    def fraction(self) -> float:
        """Floor over estimate, from 0 to 1. It is 0 only where the launch does no work at all."""
        return self.floor_s / self.estimate_s if self.estimate_s > 0 else 0.0

    @property
    def limit(self) -> Roof | None:
        """The roof that sets the estimate; None where the launch overhead is longer than every roof."""
        slowest = max(self.roofs, key=lambda roof: roof.seconds, default=None)
        return None if slowest is None or slowest.seconds < self.launch_overhead_s else slowest

    @property
    def limited_by(self) -> str:
        """The name of the roof that sets the estimate, or `launch overhead`; of a timeline its critical path."""
        if self.timing is not None:
            return self.timing.limited_by
        return LAUNCH_OVERHEAD if self.limit is None else self.limit.name

    @property
    def limited_by_short(self) -> str:
        """The same by its short name."""
        if self.timing is not None:
            return self.timing.limited_by
        return LAUNCH_OVERHEAD if self.limit is None else self.limit.short

    def at(self, key: str) -> Traffic:
        """The traffic at the level of memory of a key (`dram`, `l2`, `hbm`, `dma`)."""
        return next(row for row in self.traffic if row.level.key == key)

    def counters(self) -> Mapping[str, Counter]:
        """The modelled numbers by name, as a report lists them under `model`; no intensity where it is infinite."""
        rows: list[tuple[str, str, float]] = [
            ("floor", "", self.floor_s),
            ("estimate", "", self.estimate_s),
            ("launch_overhead", "", self.launch_overhead_s),
            ("ridge_point", "", self.ridge_point),
        ]
        rows += [("roof.<name>", roof.name, roof.seconds) for roof in self.roofs]
        if self.timing is not None:
            rows.append(("overlap", "", self.timing.overlap))
        for traffic in self.traffic:
            rows.append(("bytes.<level>", traffic.level.label, traffic.bytes))
            if math.isfinite(traffic.intensity):
                rows.append(("intensity.<level>", traffic.level.label, traffic.intensity))
        return dict(_modelled(*row) for row in rows)


def _modelled(pattern: str, name: str, value: float) -> tuple[str, Counter]:
    row = COUNTER_ROW["model"][pattern]
    return row.named(name), Counter(value, row.unit, row.provenance)
