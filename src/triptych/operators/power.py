"""The power of a budget to tell wrong from right: wrong results must exceed it, right ones must not.

Beside an operator's own wrong variants stand those that any operator's results are spoilt by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from triptych.operators.arithmetic import coarse
from triptych.operators.case import Case, case
from triptych.operators.operator import Operator, Outputs, Wrong

_DIGITS: Mapping[str, int] = {"f32": 11, "f16": 8, "bf16": 4, "f8e4m3fn": 2, "s8": 4}
"""Binary digits of the type below each: TF32 below f32, bf16 below f16, fp8 below bf16, four bits below eight."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How far a variant's results are from what is allowed."""

    variant: str
    distribution: str
    """Of wrong results, the first that tells them; of right ones, or where none does, that of the largest error."""
    error: float
    """The largest error in that distribution, as a multiple of what is allowed."""


def _inputs_of_lower_precision(of: Case) -> Outputs:
    rows = [(one, of.given[one.name]) for one in of.operator.inputs if one.element(of.dtype).name in _DIGITS]
    return of.computed(**{one.name: coarse(x, _DIGITS[one.element(of.dtype).name]).astype(x.dtype) for one, x in rows})


def _shifted(of: Case) -> Outputs:
    return tuple(np.roll(one, 1) for one in of.expected)


def _one_element_wrong(of: Case) -> Outputs:
    """The last element of each output is the negative of what it should be, or 1 where that is 0."""
    results = tuple(one.copy() for one in of.expected)
    for one in results:
        one.reshape(-1)[-1] = -one.reshape(-1)[-1] or 1
    return results


ANY: tuple[Wrong, ...] = (
    Wrong("zeros", lambda of: tuple(np.zeros_like(one) for one in of.expected)),
    Wrong("the mean in each element", lambda of: tuple(np.full_like(one, one.mean()) for one in of.expected)),
    Wrong("every element at its neighbour's place", _shifted),
    Wrong("one element wrong", _one_element_wrong),
    Wrong("inputs rounded to the next lower precision", _inputs_of_lower_precision),
)
"""What spoils any operator's results."""


def variants(operator: Operator, dtype: str) -> Iterator[Wrong]:
    """The wrong variants that a type T has: those of any operator and the operator's own."""
    floats = any(one.element(operator.dtype(dtype)).name in _DIGITS for one in operator.inputs)
    for one in (*ANY, *operator.wrong):
        if (not one.dtypes or dtype in one.dtypes) and (floats or one.compute is not _inputs_of_lower_precision):
            yield one


def cases(operator: Operator, dtype: str, seed: int = 0) -> list[Case]:
    """The operator's first size, in each distribution."""
    return [case(operator, operator.sizes[0].name, dtype, one.name, seed) for one in operator.distributions]


def right(operator: Operator, dtype: str, seed: int = 0) -> Proof:
    """What f32 arithmetic without mistakes comes to: at most 1, or the budget is too tight."""
    errors = [(_error(one, one.computed()), one.distribution) for one in cases(operator, dtype, seed)]
    error, distribution = max(errors)
    return Proof("right", distribution, error)


def wrong(operator: Operator, dtype: str, seed: int = 0) -> list[Proof]:
    """What each wrong variant comes to: above 1 in some distribution, or the budget lets it pass."""
    made = cases(operator, dtype, seed)
    with np.errstate(all="ignore"):
        return [_caught(one, made) for one in variants(operator, dtype)]


def _caught(variant: Wrong, made: list[Case]) -> Proof:
    missed: list[tuple[float, str]] = []
    for one in made:
        error = _error(one, variant.compute(one))
        if error > 1:
            return Proof(variant.name, one.distribution, error)
        missed.append((error, one.distribution))
    error, distribution = max(missed)
    return Proof(variant.name, distribution, error)


def _error(of: Case, outputs: Outputs) -> float:
    return of.error(of.stored(outputs))
