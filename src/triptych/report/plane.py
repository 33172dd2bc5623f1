"""The log-log plane of a roofline: where a launch lies on it, and which part of it is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triptych.execution.launch_report import LaunchReport


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from `low` to `high`, both above 0."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """How far along the axis a value lies: 0 at `low`, 1 at `high`."""
        return math.log10(value / self.low) / math.log10(self.high / self.low)

    def value(self, share: float) -> float:
        """The value that lies so far along the axis."""
        return self.low * (self.high / self.low) ** share

    def decades(self) -> list[float]:
        """The powers of ten on the axis."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a launch lies: FLOP/byte at the headline level of memory, and FLOP/s at the estimated time."""

    intensity: float
    flops_per_s: float


def place_of(launch: LaunchReport) -> Place | None:
    """None for a launch without FLOPs or without bytes, and for a stopped one: they have no place on the plane."""
    if launch.stopped:
        return None
    roofline = launch.roofline
    if not 0 < roofline.intensity < math.inf or roofline.estimate_s <= 0:
        return None
    return Place(roofline.intensity, roofline.flops / roofline.estimate_s)


def ceilings_of(launches: Iterable[LaunchReport]) -> dict[float, tuple[str, ...]]:
    """The peaks in FLOP/s of the pipes that the launches use most, rising, each with the pipes that have it."""
    pipes: dict[float, dict[str, None]] = {}
    for launch in launches:
        if not launch.stopped and launch.roofline.flops:
            pipes.setdefault(launch.roofline.peak_flops_per_s, {})[launch.roofline.pipe] = None
    return {peak: tuple(pipes[peak]) for peak in sorted(pipes)}


def axes_of(places: Sequence[Place], bandwidth: float, ceilings: Sequence[float]) -> tuple[LogAxis, LogAxis]:
    """The axes of FLOP/byte and of FLOP/s that show every place, every ridge point and every ceiling.

    `bandwidth` is in B/s; `ceilings`, in FLOP/s, rise. There is at least one place and one ceiling.
    """
    ridge = ceilings[-1] / bandwidth
    left = min(place.intensity for place in places) / 4
    right = max(ridge, *(place.intensity for place in places)) * 4
    bottom = min(min(place.flops_per_s for place in places), left * bandwidth) / 2
    return LogAxis(left, right), LogAxis(bottom, ceilings[-1] * 2)
