"""The page of times is made of what was measured and counted, and chips have the error bars that follow from it."""

from __future__ import annotations

import json
import math

import pytest

from generators import nkibench, times
from triptych.chips import load
from triptych.core.plan import Launch, LaunchShape
from triptych.judge.pricing import estimate
from triptych.judge.verification.steps import Step


def outward(low: float, high: float) -> tuple[float, float]:
    """With two digits behind the point of the lower end, one behind that of the upper one, and none lost."""
    return math.floor(100 * low) / 100, math.ceil(10 * high) / 10


def test_the_error_bar_is_that_of_the_calls() -> None:
    ends = outward(*times.error_bar([one.factor for one in times.calls()]))
    for name in ("h200", "h100", "h100-pcie"):
        bar = load(name).error_bar
        assert bar is not None
        assert (bar.low, bar.high) == ends
        assert f"{len(times.calls())} calls" in bar.source


def test_the_error_bar_of_trainium_has_all_published_times() -> None:
    kernels = json.loads(nkibench.DATA.read_text(encoding="utf-8"))["kernels"].values()
    factors = [one["published_ms"] / one["modelled_ms"] for one in kernels]
    for name in ("trn1", "inf2"):
        bar = load(name).error_bar
        assert bar is not None
        assert (bar.low, bar.high) == outward(min(factors), max(factors))
        assert str(len(factors)) in bar.source


@pytest.mark.parametrize("name", ["a100-80", "trn3", "v100"])
def test_a_chip_that_nobody_compared_has_none(name: str) -> None:
    assert load(name).error_bar is None


def test_estimates_are_those_of_the_judge() -> None:
    one = next(one for one in times.calls() if len(one.rooflines) == 3)
    (row,) = (row for row in times.data()["cases"] if row["case"] == f"{one.kernel} {one.dtype} {one.size}")
    records = [times.record_of(*pair, "cuda") for pair in zip(row["counted"], row["launches"], strict=True)]
    shape = LaunchShape((1, 1, 1))
    nothing = Launch("p", "k", shape.grid, shape.block, ())
    steps = [Step(place, nothing, record) for place, record in enumerate(records)]
    assert estimate(steps, load("h200")) == pytest.approx(one.estimate_s, rel=1e-12)


def test_statistics() -> None:
    assert times.error_bar([float(value) for value in range(101)]) == (5.0, 95.0)
    assert times.error_bar([1.0, 2.0]) == (1.05, 1.95)


def test_what_counts_is_the_time_of_the_kernels() -> None:
    assert 0 < times.events_s() < 3e-6
    assert all(one.measured_s > times.events_s() / 2 for one in times.calls())
