"""A score does not show the last digits of the reference that results are compared with."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from triptych import judge, operators
from triptych.judge.stable_numbers import to_digits
from triptych.operators.operator import Arrays, Outputs, Values
from triptych.report.score_json import score_json

RIGHT = "from triptych.kernels.nki import reduce_sum\n\n\ndef solution(x):\n    return reduce_sum(x)\n"
WRONG = RIGHT.replace("reduce_sum(x)\n", "reduce_sum(x[:, :-1])\n")


USUAL = operators.operator("reduce_sum")


def _next_numbers(given: Arrays, size: Values) -> Outputs:
    """Another last digit everywhere."""
    wanted = USUAL.reference(given, size)
    return tuple(np.where(np.isfinite(one), np.nextafter(one, np.inf), one) for one in wanted)


@pytest.mark.parametrize("source", [RIGHT, WRONG], ids=["right", "wrong"])
def test_last_digits_of_the_reference(pool: judge.Pool, source: str) -> None:
    other = replace(USUAL, reference=_next_numbers)
    scores = [pool.score(judge.Candidate(source), judge.task(one, dtype="f32", seed=7)) for one in (USUAL, other)]
    one, another = (score_json(score) for score in scores)
    assert {**one, "cpu_s": 0} == {**another, "cpu_s": 0}
    assert (one["verdict"] == "passed") == (source == RIGHT)
    assert one["error"]["largest"] > 0


@pytest.mark.parametrize(
    ("value", "digits", "wanted"),
    [(0.12345678, 6, 0.123457), (-1234567.0, 6, -1234570.0), (0.0, 6, 0.0), (math.inf, 6, math.inf), (1.5, 9, 1.5)],
)
def test_digits(value: float, digits: int, wanted: float) -> None:
    assert to_digits(value, digits) == wanted
    assert math.isnan(to_digits(math.nan, digits))
