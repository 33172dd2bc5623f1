"""The verdict on a candidate: a value whose illegal states cannot be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from triptych.core.source import SourceLocation
from triptych.judge.reasons import REASONS, Outcome, ReasonRow
from triptych.judge.verification.certificate import Certificate


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a candidate did not pass: a row of the table, what exactly, and where.

    Raises:
        ValueError: for a code that is not in the table.
    """

    code: str
    message: str
    where: SourceLocation | None = None

    def __post_init__(self) -> None:
        """Refuses a code that is not in the table."""
        if self.code not in REASONS:
            raise ValueError(f"'{self.code}' is not in the table of reasons: {', '.join(REASONS)}")

    @property
    def row(self) -> ReasonRow:
        """The table's row."""
        return REASONS[self.code]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest element of the smallest size found at which a result is wrong."""

    size: Mapping[str, int]
    distribution: str
    seed: int
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float
    """The absolute error that the budget allows."""
    wrong_elements: int
    """How many of the output are wrong."""
    elements: int
    """How many it has."""
    around: Mapping[str, str]
    """Of each input what lies at the element's place, or along its row, as text."""

    def __str__(self) -> str:
        """In one line."""
        place = ", ".join(map(str, self.index))
        size = " ".join(f"{name}={value}" for name, value in self.size.items())
        return (
            f"{self.output}[{place}] is {self.got:.9g}; expected {self.expected:.9g} ± {self.allowed:.3g}"
            f" ({self.wrong_elements} of {self.elements} elements are wrong, at {size}, inputs '{self.distribution}')"
        )


@dataclass(frozen=True, slots=True)
class Passed:
    """Every result is right, and the work was done.

    Raises:
        ValueError: without a certificate, or with one that does not hold.
    """

    outcome: ClassVar[Outcome] = Outcome.PASSED
    certificates: tuple[Certificate, ...]
    """One for each size."""

    def __post_init__(self) -> None:
        """Refuses what is not certified."""
        if not self.certificates or any(one.failure is not None for one in self.certificates):
            raise ValueError("a candidate passes only with a certificate for each size, each of which holds")


@dataclass(frozen=True, slots=True)
class _Failed:
    outcome: ClassVar[Outcome]
    reason: Reason

    def __post_init__(self) -> None:
        """Refuses a reason of another verdict."""
        if self.reason.row.outcome is not self.outcome:
            raise ValueError(f"'{self.reason.code}' is no reason for the verdict '{self.outcome.value}'")


@dataclass(frozen=True, slots=True)
class Wrong(_Failed):
    """A result is not what the operator says, or depends on what it must not depend on."""

    outcome: ClassVar[Outcome] = Outcome.WRONG
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class Cheated(_Failed):
    """The results were not computed by the candidate's kernels, or not as the operator asks."""

    outcome: ClassVar[Outcome] = Outcome.CHEATED
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Crashed(_Failed):
    """The candidate's host code or a kernel ended with an error."""

    outcome: ClassVar[Outcome] = Outcome.CRASHED


@dataclass(frozen=True, slots=True)
class TimedOut(_Failed):
    """The candidate's host code or a kernel did not come to an end."""

    outcome: ClassVar[Outcome] = Outcome.TIMED_OUT


@dataclass(frozen=True, slots=True)
class Invalid(_Failed):
    """There is nothing to judge."""

    outcome: ClassVar[Outcome] = Outcome.INVALID


Failed = Wrong | Cheated | Crashed | TimedOut | Invalid
Verdict = Passed | Failed
_FAILED: Mapping[Outcome, type[Failed]] = {one.outcome: one for one in (Wrong, Cheated, Crashed, TimedOut, Invalid)}


def failed(code: str, message: str, where: SourceLocation | None = None) -> Failed:
    """The verdict of a reason, without a counterexample or a certificate."""
    return _FAILED[REASONS[code].outcome](Reason(code, message, where))
