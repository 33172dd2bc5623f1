"""Instructions among the lanes of a warp, in whole and partial masks: both executors, and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

MASKS = (0xFFFF_FFFF, 0x1, 0x8000_0000, 0x5A5A_0FF0)


def kernel(body: str, mask: int) -> str:
    """The lanes of a mask execute the body: %r1 or %d3 is the lane's value, %r2 and %p2 its results."""
    return f"""{HEADER}.entry k(.param .u64 values, .param .u64 results)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
mov.u32 %r0, %laneid; mov.u32 %r7, %lanemask_eq; and.b32 %r7, %r7, {mask}; setp.eq.u32 %p1, %r7, 0;
ld.param.u64 %d0, [values]; ld.param.u64 %d1, [results];
mad.wide.u32 %d0, %r0, 8, %d0; mad.wide.u32 %d1, %r0, 8, %d1;
@%p1 bra end;
ld.global.u64 %d3, [%d0]; cvt.u32.u64 %r1, %d3; {body}
selp.b32 %r3, 1, 0, %p2; st.global.v2.b32 [%d1], {{%r2, %r3}};
end: ret;
}}
"""


def run(body: str, mask: int, values: np.ndarray) -> list[tuple[int, int]]:
    """The results of the lanes of the mask."""
    results = np.zeros((32, 2), np.uint32)
    _, found = run_both(kernel(body, mask), "k", 1, 32, values, results).arrays
    return [(int(d), int(p)) for lane, (d, p) in enumerate(found) if mask >> lane & 1]


def values_of(width: int, distinct: int) -> np.ndarray:
    source = np.random.default_rng(distinct)
    if width == 32:
        return source.integers(0, distinct, 32).astype(np.uint64)
    return source.integers(0, distinct, 32).astype(np.uint64) << np.uint64(40) | np.uint64(7)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("width", "register"), [(32, "%r1"), (64, "%d3")])
@pytest.mark.parametrize("distinct", [1, 4, 1000])
def test_match(mask: int, width: int, register: str, distinct: int) -> None:
    values = values_of(width, distinct)
    members = [lane for lane in range(32) if mask >> lane & 1]
    same = [sum(1 << other for other in members if values[other] == values[lane]) for lane in members]
    any_ = run(f"match.any.sync.b{width} %r2, {register}, {mask}; setp.ne.u32 %p2, %r2, 0;", mask, values)
    assert any_ == [(bits, 1) for bits in same]
    agreed = all(bits == mask for bits in same)
    all_ = run(f"match.all.sync.b{width} %r2|%p2, {register}, {mask};", mask, values)
    assert all_ == [(mask, 1) if agreed else (0, 0)] * len(members)


@pytest.mark.parametrize("mask", MASKS)
def test_elect(mask: int) -> None:
    first = (mask & -mask).bit_length() - 1
    elected = run(f"elect.sync %r2|%p2, {mask};", mask, np.arange(32, dtype=np.uint64))
    assert elected == [(first, int(lane == first)) for lane in range(32) if mask >> lane & 1]
    assert [p for _, p in run(f"elect.sync _|%p2, {mask};", mask, np.zeros(32, np.uint64))] == [p for _, p in elected]


@pytest.mark.parametrize("lane", [0, 5, 31])
def test_a_shuffle_from_one_lane_that_is_known(lane: int) -> None:
    values = values_of(32, 1000)
    found = run(f"shfl.sync.idx.b32 %r2|%p2, %r1, {lane}, 31, -1;", 0xFFFF_FFFF, values)
    assert found == [(int(values[lane]), 1)] * 32


@pytest.mark.parametrize("beside", ["", "shfl.sync.idx.b32 %r6, %r1, %r5, 31, %r4; xor.b32 %r2, %r2, %r6;"])
@pytest.mark.parametrize("mask", MASKS)
def test_shuffles_of_both_widths_by_lanes_that_vary(mask: int, beside: str) -> None:
    """`match.all` of 64 bits takes them from the first lane of its mask, which here is a register's of every lane."""
    values = values_of(64, 1)
    vary = f"mov.u32 %r5, %laneid; and.b32 %r4, %r5, 0; or.b32 %r4, %r4, {mask};"
    found = run(f"{vary} match.all.sync.b64 %r2|%p2, %d3, %r4; {beside}", mask, values)
    own = int(values[0]) & 0xFFFF_FFFF if beside else 0
    assert found == [(mask ^ own, 1)] * len(found)
    values[(mask & -mask).bit_length() - 1] += np.uint64(1 << 40)
    found = run(f"{vary} match.all.sync.b64 %r2|%p2, %d3, %r4; {beside}", mask, values)
    agrees = mask & (mask - 1) == 0
    assert found == [((mask if agrees else 0) ^ own, int(agrees))] * len(found)
