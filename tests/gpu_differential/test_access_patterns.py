"""Counters of memory requests: against plain sets of bytes, words and sectors, and on both executors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_request import LANES, SHAPES, SPAN, check


def strided(shape: str, stride: int, start: int = 0, lanes: Sequence[int] = range(LANES)) -> list[int]:
    unit = SHAPES[shape][0] * SHAPES[shape][1]
    places = [(start + stride * lane) * unit % (SPAN - unit + 1) // unit * unit for lane in range(LANES)]
    return [place if lane in lanes else -1 for lane, place in enumerate(places)]


MASKS = {
    "all": range(LANES),
    "first half": range(16),
    "middle": range(5, 21),
    "last": range(31, 32),
    "odd": range(1, LANES, 2),
    "few": (0, 3, 4, 17, 30),
}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("shape", SHAPES)
def test_strides_starts_and_masks(space: str, kind: str, shape: str) -> None:
    for stride, start in ((1, 0), (1, 1), (1, 7), (0, 3), (2, 0), (3, 2), (17, 0), (32, 0), (-1, 40)):
        check(space, kind, shape, strided(shape, stride, start))
    for lanes in MASKS.values():
        check(space, kind, shape, strided(shape, 1, 2, lanes))
        check(space, kind, shape, strided(shape, 5, 0, lanes))
    check(space, kind, shape, [-1] * LANES)


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("shape", ["v4.u32", "v2.u64"])
def test_quarters_of_a_warp_at_all_banks(kind: str, shape: str) -> None:
    swizzled = [128 * (lane % 8) + 16 * (lane // 8 ^ lane % 8) for lane in range(LANES)]
    rows = [128 * (lane // 8) + 16 * (lane * 3 % 8) for lane in range(LANES)]
    for places in (
        swizzled,
        rows,
        [16 * lane for lane in range(LANES)],
        [SPAN - 16 * (lane + 1) for lane in range(LANES)],
    ):
        check("shared", kind, shape, places)
        for lanes in MASKS.values():
            check("shared", kind, shape, [place if lane in lanes else -1 for lane, place in enumerate(places)])
        for lane in (0, 13, 31):  # one that reaches for its neighbour's banks
            other = places[lane ^ 1]
            check("shared", kind, shape, [*places[:lane], (other + 128) % SPAN, *places[lane + 1 :]])
            check("shared", kind, shape, [*places[:lane], other, *places[lane + 1 :]])


@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_addresses_and_any_mask(data: st.DataObject) -> None:
    space = data.draw(st.sampled_from(["global", "shared"]))
    kind = data.draw(st.sampled_from(["load", "store"]))
    shape = data.draw(st.sampled_from(sorted(SHAPES)))
    unit = SHAPES[shape][0] * SHAPES[shape][1]
    reach = data.draw(st.sampled_from([4, 40, SPAN // unit]))
    place = st.integers(-1, reach - 1).map(lambda index: index * unit if index >= 0 else -1)
    check(space, kind, shape, data.draw(st.lists(place, min_size=LANES, max_size=LANES)))
