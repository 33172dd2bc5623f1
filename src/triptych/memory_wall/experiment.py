"""What an experiment is: a declaration of what is varied, what is measured and what a formula says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from triptych.chips import ChipChoice
from triptych.core.counters import Counters
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import profile

CHIPS = {"CUDA C++": "h100", "Triton": "h100", "NKI": "trn2"}
"""Whose machine and roofline each language's launches have."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement, beside what the formula says."""

    series: str
    x: float
    measured: float
    formula: float

    @property
    def off(self) -> float:
        """By how much the measured value differs from the formula's, as a part of that."""
        return abs(self.measured - self.formula) / self.formula


@dataclass(frozen=True, slots=True)
class Axis:
    """What stands along one side of a figure."""

    label: str
    unit: str = ""
    """`B` for bytes and `s` for seconds, which are written with their multiples; else no unit."""
    logarithmic: bool = True


@dataclass(frozen=True, slots=True)
class Experiment:
    """A text-book's statement, and the runs that test it."""

    name: str
    title: str
    formula: str
    """What the text-book says, as a formula."""
    measured: str
    """What is run, and what is counted at which level, or modelled."""
    finding: str
    """What the figures say, and where they are not what the text-book says."""
    within: float
    """How far a measured value may be off, as a part of the formula's."""
    x: Axis
    y: Axis
    run: Callable[[bool], Iterable[Point]]
    """The measurements: at sizes worth looking at, or (where it is given True) at small ones of the same kind."""

    def disagreements(self, points: Sequence[Point]) -> list[Point]:
        """The points that are farther off than they may be."""
        return [point for point in points if not point.off <= self.within]


def launches(chip: ChipChoice, call: Callable[[], object]) -> Sequence[LaunchReport]:
    """What a call launches, on a chip.

    Raises:
        ValueError: for a launch with a finding: what it counted is not that of a right kernel.
    """
    with profile(chip=chip) as recorded:
        call()
    if recorded.findings:
        raise ValueError(f"{recorded.findings[0].message}: no measurement")
    return recorded.launches


def counted(chip: ChipChoice, call: Callable[[], object]) -> Counters:
    """The counters of the one launch of a call."""
    (launch,) = launches(chip, call)
    return launch.counters
