"""The drawing of a roofline: the page's geometry."""

from __future__ import annotations

import numpy as np
import pytest

from launches import VEC_ADD, gpu_launch, nki_launch
from triptych.execution.launch_report import LaunchReport
from triptych.report.groups import groups_of
from triptych.report.html.chart import PLOT, Chart, chart_of
from triptych.report.html.labels import Box, Label, Spot, place_labels
from triptych.report.plane import LogAxis

MATMUL = {**VEC_ADD, "flops.f32": 10**11}


def chart(*launches: LaunchReport) -> Chart:
    found = chart_of(groups_of(launches))
    assert found is not None
    return found


def test_a_point_lies_below_the_roofs_that_bound_it() -> None:
    drawn = chart(gpu_launch(), gpu_launch("matmul", values=MATMUL))
    low, high = drawn.points
    (slope,) = (line for line in drawn.lines if line.kind == "slope")
    (ceiling,) = (line for line in drawn.lines if line.kind == "ceiling")
    on_slope = slope.y1 + (low.x - slope.x1) / (slope.x2 - slope.x1) * (slope.y2 - slope.y1)
    assert PLOT.bottom > low.y > on_slope
    assert high.x > ceiling.x1
    assert high.y >= ceiling.y1
    assert (slope.x2, slope.y2) == pytest.approx((ceiling.x1, ceiling.y1))


def test_all_lies_inside() -> None:
    drawn = chart(
        gpu_launch(), gpu_launch("matmul", values=MATMUL), gpu_launch("f64", values={"flops.f64": 9, **MATMUL})
    )
    for line in drawn.lines:
        assert PLOT.left <= line.x1 <= line.x2 <= PLOT.right
        assert PLOT.top <= min(line.y1, line.y2)
        assert max(line.y1, line.y2) <= PLOT.bottom
    for point in drawn.points:
        assert PLOT.left < point.x < PLOT.right
        assert PLOT.top < point.y < PLOT.bottom
    whole = Box(0, 0, drawn.width, drawn.height)
    assert all(whole.holds(label.box) for label in drawn.labels)


def test_labels_name_launches_and_roofs() -> None:
    drawn = chart(gpu_launch(), gpu_launch("matmul", values=MATMUL))
    texts = [label.text for label in drawn.labels]
    for text in ("1 vec_add", "2 matmul", "memory: 3.35 TB/s", "f32: 67 TFLOP/s", "FLOP/byte, DRAM (compulsory)"):
        assert text in texts
    assert [point.target for point in drawn.points] == [1, 2]
    assert drawn.points[0].title == "1 vec_add (cuda): 0.0833 FLOP/byte, 182 GFLOP/s at the estimated time"
    assert "memory: 375 GB/s" in [label.text for label in chart(nki_launch()).labels]


def test_points_of_one_place_share_a_label() -> None:
    several = [gpu_launch(values={**VEC_ADD, "barriers": number}) for number in range(6)]
    labels = [label.text for label in chart(*several).labels if label.kind == "label"]
    assert labels == ["1, 2, 3, 4, … vec_add"]
    others = [gpu_launch(f"k{number}", values=VEC_ADD) for number in range(2)]
    assert [label.text for label in chart(*others).labels if label.kind == "label"] == ["1, 2"]


def test_a_long_name_is_cut() -> None:
    (label,) = (label for label in chart(gpu_launch("x" * 500)).labels if label.kind == "label")
    assert label.text == "1 " + "x" * 19 + "…"


def test_ceilings_that_lie_close_have_labels_that_do_not_meet() -> None:
    values = [{**VEC_ADD, pipe: 10**12} for pipe in ("flops.f64", "flops.f32", "flops.f16", "flops.bf16")]
    drawn = chart(*(gpu_launch(f"k{index}", values=one) for index, one in enumerate(values)))
    boxes = [label.box for label in drawn.labels if label.kind == "roof" and not label.angle]
    assert len(boxes) >= 3
    assert not any(one.meets(other) for index, one in enumerate(boxes) for other in boxes[:index])


def test_nothing_has_a_place() -> None:
    assert chart_of(groups_of([gpu_launch(values={"flops.f32": 1})])) is None


def test_labels_keep_clear() -> None:
    random = np.random.default_rng(0)
    inside = Box(0, 0, 2000, 2000)
    spots = [
        Spot(float(x), float(y), (f"{n} kernel", f"{n}")) for n, (x, y) in enumerate(random.random((40, 2)) * 2000)
    ]
    labels = place_labels(spots, [], inside)
    assert len(labels) == len(spots)
    for index, label in enumerate(labels):
        assert label.text in spots[index].texts
        clear = [*(other.box for other in labels[:index]), *(spot.box for spot in spots)]
        assert inside.holds(label.box)
        assert not any(label.box.meets(box) for box in clear)


def test_a_crowd_still_has_its_labels() -> None:
    spots = [Spot(10, 10, (f"{number} kernel", f"{number}")) for number in range(9)]
    labels = place_labels(spots, [], Box(0, 0, 40, 20))
    assert [label.text for label in labels] == [f"{number}" for number in range(9)]


def test_the_box_of_a_label_follows_its_anchor() -> None:
    start, middle, end = (Label(100, 50, "four", anchor).box for anchor in ("start", "middle", "end"))
    assert start.left == 100
    assert middle.left + middle.right == 200
    assert end.right == 100


def test_an_axis_in_decades() -> None:
    axis = LogAxis(0.5, 2000)
    assert axis.decades() == [1, 10, 100, 1000]
    assert (axis.share(0.5), axis.share(2000)) == (0, 1)
    assert axis.value(axis.share(37.0)) == pytest.approx(37.0)
