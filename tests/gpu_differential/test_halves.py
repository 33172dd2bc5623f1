"""Requests whose halves each reach for neighbouring elements, or each for one, as blocks of 16 threads a row do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import HEADER, run_both
from one_request import LANES, SHAPES, SPAN, check, kernel

from triptych import MemoryFault

HALF = LANES // 2
DISTANCES = (0, 1, 8, 17, 31, 32, -16)
"""From the first half's first element to the second's; 16 makes one run of them."""


def halves(shape: str, first: int, distance: int, *, step: int) -> list[int]:
    unit = SHAPES[shape][0] * SHAPES[shape][1]
    places = [first + lane // HALF * distance + lane % HALF * step for lane in range(LANES)]
    return [place * unit % (SPAN - unit + 1) // unit * unit for place in places]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("shape", SHAPES)
def test_counters_and_values(space: str, kind: str, shape: str) -> None:
    for index, distance in enumerate(DISTANCES):
        check(space, kind, shape, halves(shape, 40 + index % 5, distance, step=1))
        check(space, kind, shape, halves(shape, 40 + index % 3, distance, step=0))
    check(space, kind, shape, halves(shape, 3, 16, step=1))  # one run, which begins inside of a sector


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("shape", ["u8", "u32", "v4.u32"])
def test_what_is_almost_by_halves(space: str, shape: str) -> None:
    plain = halves(shape, 5, 40, step=1)
    unit = SHAPES[shape][0] * SHAPES[shape][1]
    for lane in (1, 15, 16, 31):
        check(space, "load", shape, [*plain[:lane], plain[lane] + 3 * unit, *plain[lane + 1 :]])
        check(space, "store", shape, [*plain[:lane], -1, *plain[lane + 1 :]])
    check(space, "load", shape, [*halves(shape, 5, 40, step=1)[:HALF], *halves(shape, 9, 0, step=0)[HALF:]])


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize(("space", "starts", "lane", "unit"), [
    ("shared", (0, SPAN - 60), 31, 4),
    ("shared", (SPAN - 64, SPAN - 56), 30, 4),
    ("shared", (-64, 0), 0, 4),
    ("global", (0, SPAN - 60), 31, 4),
    ("global", (SPAN - 60, 0), 15, 4),
    ("global", (0, -4), 16, 4),
    ("shared", (0, 66), 16, 4),
    ("global", (2, 64), 0, 4),
])  # fmt: skip
def test_the_lane_at_fault_is_named(kind: str, space: str, starts: tuple[int, int], lane: int, unit: int) -> None:
    text = kernel(space, kind, "u32").replace("setp.ge.s32 %p1, %r1, 0;", "setp.ne.s32 %p1, %r1, 12345;")
    text = text.replace("cvt.u64.u32 %d3, %r1;", "cvt.s64.s32 %d3, %r1;")
    places = np.array([starts[lane // HALF] + lane % HALF * unit for lane in range(LANES)], np.int32)
    for only in ("generated", "oracle"):
        with pytest.raises(MemoryFault) as raised:
            run_both(text, "access", 1, LANES, places, np.zeros(SPAN, np.uint8), np.zeros(LANES, np.uint64), only=only)
        assert re.search(rf"by (thread \({lane},0,0\)|lane {lane}$)", str(raised.value), re.MULTILINE)
        assert ("misaligned" if starts[lane // HALF] % unit else "bounds") in str(raised.value)


BOTH_SPACES = f"""{HEADER}.entry generic(.param .u64 data)
{{
.reg .b32 %r<8>; .reg .b64 %d<8>; .shared .align 16 .b8 tile[1024];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 4; and.b32 %r2, %r0, 15; mul.lo.u32 %r3, %r1, 96; mad.lo.u32 %r3, %r2, 4, %r3;
cvt.u64.u32 %d0, %r3; ld.param.u64 %d1, [data]; add.u64 %d2, %d1, %d0; mov.u64 %d3, tile; cvta.shared.u64 %d3, %d3;
add.u64 %d3, %d3, %d0; ld.u32 %r4, [%d2]; st.u32 [%d3], %r4; ld.u32 %r5, [%d3+0]; add.u32 %r5, %r5, %r1;
st.u32 [%d2+512], %r5; ret;
}}
"""


def test_generic_addresses_reach_for_the_space_that_they_name() -> None:
    data = np.arange(256, dtype=np.uint32)
    (result,) = run_both(BOTH_SPACES, "generic", 1, LANES, data).arrays
    wanted = data.copy()
    for lane in range(LANES):
        place = lane // HALF * 24 + lane % HALF
        wanted[place + 128] = data[place] + lane // HALF
    np.testing.assert_array_equal(result, wanted)
