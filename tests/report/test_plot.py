"""The text roofline."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from launches import VEC_ADD, gpu_launch
from triptych.report.plot import MARKS, points_of, roofline_plot

MATMUL = {**VEC_ADD, "flops.f32": 10**11}


@pytest.mark.parametrize(("width", "height"), [(40, 8), (80, 16), (200, 40)])
def test_it_fits(width: int, height: int) -> None:
    lines = roofline_plot([gpu_launch(), gpu_launch("matmul", values=MATMUL)], width, height).splitlines()
    plot = lines[: height + 3]
    assert max(map(cell_len, plot)) <= width
    assert len(lines) == height + 3 + 2
    assert "FLOP/byte" in lines[height + 2]


def test_points_lie_under_the_roof_in_order() -> None:
    lines = roofline_plot([gpu_launch(), gpu_launch("matmul", values=MATMUL)], 80).splitlines()
    row = {mark: next(i for i, text in enumerate(lines[:16]) if mark in text[13:]) for mark in "AB"}
    column = {mark: lines[row[mark]].index(mark, 13) for mark in "AB"}
    assert column["A"] < column["B"]
    assert row["A"] > row["B"]
    assert any("─" in text for text in lines[:16])
    assert any("/" in text[13:] for text in lines[:16])
    assert "A  vec_add (cuda): 0.0833 FLOP/byte, 182 GFLOP/s" in lines[-2]


def test_the_estimate_places_a_point() -> None:
    (point,) = points_of([gpu_launch()])
    launch = gpu_launch()
    assert point.place.flops_per_s == launch.roofline.flops / launch.roofline.estimate_s


def test_launches_without_flops_have_no_place() -> None:
    idle = gpu_launch("copy", values={"global.load.compulsory_bytes": 64})
    assert roofline_plot([idle], 80) == ""
    assert [point.label for point in points_of([idle, gpu_launch()])] == ["vec_add (cuda)"]


def test_many_launches_reuse_the_letters() -> None:
    points = points_of([gpu_launch()] * 30)
    assert points[26].mark == MARKS[0]
    assert "*" in roofline_plot([gpu_launch()] * 30, 80)


def test_points_of_one_place_stand_side_by_side() -> None:
    plot = roofline_plot([gpu_launch()] * 3, 80).splitlines()[:16]
    assert any("CAB" in text for text in plot)
