"""A smaller counterexample: the same candidate at smaller sizes, captured once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from triptych.chips import Chip
from triptych.core.errors import TriptychError
from triptych.judge.candidate import Candidate
from triptych.judge.capture.plans import capture_sizes
from triptych.judge.verdict import Wrong
from triptych.judge.verification.size_judge import SizeJudge
from triptych.judge.workshop import Known, Workshop
from triptych.operators.case import case
from triptych.operators.operator import Operator, Size, Values

_DIVISORS = (16, 8, 4, 2)
_LEAST = 8
"""Integers of a size that stay as they are: flags, strides, windows."""
MOST_TRIES = 6


def shrink(workshop: Workshop, candidate: Candidate, found: SizeJudge, chips: Sequence[Chip]) -> Wrong | None:
    """The verdict at the smallest size at which the candidate is wrong too.

    Args:
        workshop: the sandboxes.
        candidate: what was wrong.
        found: what judged it so.
        chips: those that it was captured for.

    Returns:
        None where no smaller size that was tried gives a wrong result: a candidate may refuse one, and that is not one.
    """
    for size in smaller_sizes(found.task.operator, found.size.values, found.task.dtype.name):
        known = capture_sizes(workshop, candidate, found.task, (size,), chips)
        if not isinstance(known, Known):
            continue
        judged = replace(found, size=size, plan=known.plans.plans[0]).judge()
        if isinstance(judged, Wrong) and judged.counterexample is not None:
            return judged
    return None


def smaller_sizes(operator: Operator, values: Values, dtype: str) -> Iterator[Size]:
    """Sizes whose large integers are a sixteenth, an eighth and so on, the smallest first, if they have inputs."""
    seen: set[tuple[int, ...]] = {tuple(values.values())}
    for divisor in _DIVISORS:
        fewer = {name: max(1, value // divisor) if value >= _LEAST else value for name, value in values.items()}
        if tuple(fewer.values()) in seen or len(seen) > MOST_TRIES:
            continue
        seen.add(tuple(fewer.values()))
        if _has_inputs(operator, fewer, dtype):
            yield Size(" ".join(f"{name}={value}" for name, value in fewer.items()), fewer, "a counterexample's")


def _has_inputs(operator: Operator, values: Values, dtype: str) -> bool:
    """Whether inputs of each distribution, and a reference, can be made: not every integer fits every other."""
    try:
        for one in operator.distributions:
            case(operator, values, dtype, one.name)
    except (TriptychError, ArithmeticError, LookupError, ValueError):
        return False
    return True
