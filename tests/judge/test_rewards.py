"""The reward: bounds, monotony, means, and what it is compared with."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triptych.chips import ErrorBar, load
from triptych.judge.pricing import launch_cost, limit
from triptych.judge.rewards import Time, geometric_mean, reward
from triptych.operators import operator
from triptych.operators.floor import floor

SECONDS = st.floats(1e-9, 1.0)


def time(limit_s: float, estimate_s: float, baseline_s: float | None = None) -> Time:
    return Time("tiny", "h100", limit_s, estimate_s, baseline_s=baseline_s)


@given(SECONDS, SECONDS)
def test_bounds(limit_s: float, estimate_s: float) -> None:
    assert 0 < reward(True, [time(limit_s, estimate_s)]) <= 1
    assert reward(False, [time(limit_s, estimate_s)]) == 0


@given(SECONDS, st.floats(1.0, 100.0), st.floats(1.01, 10.0))
def test_monotone(limit_s: float, factor: float, slower: float) -> None:
    quick, slow = (reward(True, [time(limit_s, limit_s * one)]) for one in (factor, factor * slower))
    assert slow < quick
    assert math.isclose(slow * slower, quick, rel_tol=1e-9)


def test_by_hand() -> None:
    assert reward(True, [time(1e-6, 4e-6)]) == pytest.approx(0.25)
    assert reward(True, [time(1e-6, 4e-6), time(1e-6, 1e-6)]) == pytest.approx(0.5)  # the geometric mean
    assert reward(True, [time(2e-6, 1e-6)]) == 1
    assert geometric_mean([1.0, 1.0, 1.0]) == 1
    assert reward(False, []) == 0


def test_what_it_is_compared_with() -> None:
    one = time(1e-6, 3e-6, baseline_s=5e-6)
    assert one.speedup == pytest.approx(5 / 3)
    assert one.sol_score == pytest.approx(1 / (1 + 2 / 4))
    assert time(1e-6, 5e-6, 5e-6).sol_score == pytest.approx(0.5)
    assert time(1e-6, 1e-6, 5e-6).sol_score == 1
    assert (time(1e-6, 3e-6).speedup, time(1e-6, 3e-6).sol_score) == (None, None)
    assert time(1e-6, 3e-6, 1e-6).sol_score is None


def test_refused() -> None:
    for seconds in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="a time of"):
            time(1e-6, seconds)
    with pytest.raises(ValueError, match="has a time"):
        reward(True, [])


def test_the_limit_is_a_launch_and_the_floor() -> None:
    one = operator("matmul")
    for chip in (load("h100"), load("trn2")):
        size = one.size("square_4096").values
        least = floor(one, size, one.dtype("bf16"), chip).seconds
        assert limit(one, size, one.dtype("bf16"), chip) == launch_cost(chip) + least
    assert launch_cost(load("h100")) == load("h100").facts["launch_overhead_s"].value


def test_an_error_bar_changes_no_reward() -> None:
    plain = time(1e-6, 4e-6, 2e-6)
    barred = replace(plain, error_bar=ErrorBar(0.5, 3.0, "an H200, 7 calls"))
    assert plain.most_s is None
    assert barred.most_s == pytest.approx(12e-6)
    assert reward(True, [barred]) == reward(True, [plain])
    assert (barred.speedup, barred.sol_score) == (plain.speedup, plain.sol_score)
