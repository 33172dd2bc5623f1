"""`triton.testing.perf_report` while the driver is active: labelled, and as long as the settings want it."""

# Triton's host side has no types.
# ruff: noqa: ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pytest
import triton

from triptych.core.settings import scope
from triptych.languages.triton.reports import modelled


def benchmark(values: list[int], ylabel: str = "GB/s") -> Any:
    return triton.testing.Benchmark(
        x_names=["n"], x_vals=values, line_arg="provider", line_vals=["ours"], line_names=["ours"],
        plot_name="sizes", args={}, ylabel=ylabel,
    )  # fmt: skip


def test_the_axis_says_that_the_figures_are_modelled(active: None) -> None:
    original = benchmark([1, 2, 3])
    assert modelled(original).ylabel == "GB/s, modelled"
    assert modelled(benchmark([1], "")).ylabel == "modelled"
    assert modelled(original).x_vals == [1, 2, 3]
    assert original.ylabel == "GB/s"


@pytest.mark.parametrize(("points", "measured"), [(0, []), (2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 3])])
def test_a_setting_bounds_its_points(
    active: None, monkeypatch: pytest.MonkeyPatch, points: int, measured: list[int]
) -> None:
    seen: list[int] = []

    def run_one(self: Any, bench: Any, *arguments: Any, **keywords: Any) -> None:
        seen.extend(bench.x_vals)

    monkeypatch.setattr(triton.testing.Mark, "_run", run_one)
    report: Any = triton.testing.Mark(None, [benchmark([1, 2, 3])])
    with scope(benchmark_points=points):
        if points < 3:
            with pytest.warns(RuntimeWarning, match=f"sizes: {points} of 3 points of the x axis are measured"):
                report.run()
        else:
            report.run()
    assert seen == measured
    assert report.benchmarks[0].x_vals == [1, 2, 3]
