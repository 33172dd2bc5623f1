"""The reward: how near a candidate that passed comes to the hardware's limit. Pure functions of a verdict and times.

Derivation. On a chip, no program of an operator at a size takes less than

    limit = one launch + floor,    floor = max(bytes / bandwidth, matrix FLOPs / peak, plain FLOPs / peak),

since it must be launched, load each input and store each output once, and carry out the least FLOPs
(`operators/floor.py`). A candidate takes `estimate` seconds there. So limit / estimate lies in (0, 1], is 1 at the
limit, grows where the time shrinks, and halves where the time doubles. It knows no baseline, so nobody has to be
beaten, and a baseline's weakness earns nothing. Over several sizes and chips it is the geometric mean: equal ratios
of time count equally, and no size can be traded for another, as with sums of times. Whoever did not pass gets 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from triptych.chips import ErrorBar


@dataclass(frozen=True, slots=True)
class Time:
    """How long a candidate takes at a size on a chip, and what bounds it from below. Seconds.

    Raises:
        ValueError: for times that are not above 0.
    """

    size: str
    chip: str
    limit_s: float
    """What no program takes less than: one launch, and the floor of the operator's least work."""
    estimate_s: float
    """The candidate's time, that of the case in which it takes longest."""
    provenance: str = "modelled"
    baseline_s: float | None = None
    """The time of the reference kernel, by the same estimate; None where there is none for the language."""
    error_bar: ErrorBar | None = None
    """How far times on the chip were from estimates; None where nobody knows. No reward depends on it."""

    def __post_init__(self) -> None:
        """Refuses what is no time."""
        for seconds in (self.limit_s, self.estimate_s, self.baseline_s):
            if seconds is not None and not 0 < seconds < math.inf:
                raise ValueError(f"a time of {seconds} s")

    @property
    def most_s(self) -> float | None:
        """What the error bar of the estimate reaches up to; None where nobody knows."""
        return None if self.error_bar is None else self.estimate_s * self.error_bar.high

    @property
    def fraction(self) -> float:
        """How near to the limit: limit over estimate."""
        return self.limit_s / self.estimate_s

    @property
    def speedup(self) -> float | None:
        """The reference kernel's time over the candidate's; None where there is no reference kernel."""
        return None if self.baseline_s is None else self.baseline_s / self.estimate_s

    @property
    def sol_score(self) -> float | None:
        """SOL-ExecBench's score, 1 / (1 + (T_k - T_SOL) / (T_b - T_SOL)); T_b is the reference kernel's time.

        It is ½ at the baseline and 1 at the limit. None where there is no baseline, or it is at the limit itself.
        """
        if self.baseline_s is None or self.baseline_s <= self.limit_s:
            return None
        return 1 / (1 + (self.estimate_s - self.limit_s) / (self.baseline_s - self.limit_s))


def reward(passed: bool, times: Sequence[Time]) -> float:
    """0 for whoever did not pass; else the geometric mean of limit over estimate, in (0, 1].

    Raises:
        ValueError: for somebody who passed without a time.
    """
    if not passed:
        return 0.0
    if not times:
        raise ValueError("a candidate that passed has a time for each size and chip")
    return geometric_mean([min(1.0, time.fraction) for time in times])


def geometric_mean(values: Sequence[float]) -> float:
    """Of numbers above 0."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))
