"""Lanes of one warp that name different masks at one instruction: each group is on its own, on both executors.

What is expected is reckoned in plain Python from the lanes of a group: nothing of the instruction table is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np
import pytest
from both import HEADER, run_both

LANES = 32
Expect = Callable[[Sequence[int], Sequence[int], int], tuple[int, int]]
"""(values of all lanes, the group's lanes ascending, this lane) -> the two results."""


def bits_of(lanes: Sequence[int]) -> int:
    return sum(1 << lane for lane in lanes)


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def reduction(combine: Callable[[int, int], int], read: Callable[[int], int] = int) -> Expect:
    def expect(values: Sequence[int], group: Sequence[int], lane: int) -> tuple[int, int]:
        return reduce(combine, [read(values[other]) for other in group]) & 0xFFFF_FFFF, 0

    return expect


def vote(holds: Callable[[Sequence[bool]], bool]) -> Expect:
    return lambda values, group, lane: (0, int(holds([values[other] & 1 == 1 for other in group])))


def equal_any(values: Sequence[int], group: Sequence[int], lane: int) -> tuple[int, int]:
    return bits_of([other for other in group if values[other] % 3 == values[lane] % 3]), 0


def equal_all(values: Sequence[int], group: Sequence[int], lane: int) -> tuple[int, int]:
    agreed = len({values[other] & 1 for other in group}) == 1
    return (bits_of(group), 1) if agreed else (0, 0)


INSTRUCTIONS: Mapping[str, tuple[str, Expect]] = {
    "add": ("redux.sync.add.u32 %r2, %r1, %r4;", reduction(lambda a, b: a + b)),
    "add signed": ("redux.sync.add.s32 %r2, %r1, %r4;", reduction(lambda a, b: a + b, signed)),
    "min": ("redux.sync.min.u32 %r2, %r1, %r4;", reduction(min)),
    "max": ("redux.sync.max.u32 %r2, %r1, %r4;", reduction(max)),
    "min signed": ("redux.sync.min.s32 %r2, %r1, %r4;", reduction(min, signed)),
    "max signed": ("redux.sync.max.s32 %r2, %r1, %r4;", reduction(max, signed)),
    "and": ("redux.sync.and.b32 %r2, %r1, %r4;", reduction(lambda a, b: a & b)),
    "or": ("redux.sync.or.b32 %r2, %r1, %r4;", reduction(lambda a, b: a | b)),
    "xor": ("redux.sync.xor.b32 %r2, %r1, %r4;", reduction(lambda a, b: a ^ b)),
    "ballot": (
        "vote.sync.ballot.b32 %r2, %p1, %r4;",
        lambda values, group, lane: (bits_of([other for other in group if values[other] & 1]), 0),
    ),
    "all": ("vote.sync.all.pred %p2, %p1, %r4;", vote(all)),
    "any": ("vote.sync.any.pred %p2, %p1, %r4;", vote(any)),
    "uni": ("vote.sync.uni.pred %p2, %p1, %r4;", vote(lambda holds: len(set(holds)) == 1)),
    "match any": ("rem.u32 %r5, %r1, 3; match.any.sync.b32 %r2, %r5, %r4;", equal_any),
    "match all": ("and.b32 %r5, %r1, 1; match.all.sync.b32 %r2|%p2, %r5, %r4;", equal_all),
    "elect": (
        "elect.sync %r2|%p2, %r4;",
        lambda values, group, lane: (group[0], int(lane == group[0])),
    ),
    "first": (
        "brev.b32 %r5, %r4; clz.b32 %r5, %r5; shfl.sync.idx.b32 %r2|%p2, %r1, %r5, 31, %r4;",
        lambda values, group, lane: (values[group[0]], 1),
    ),
    "barrier": ("bar.warp.sync %r4; mov.u32 %r2, %r1;", lambda values, group, lane: (values[lane], 0)),
}
WAYS = {
    "together": "BODY",
    "apart": """
        setp.eq.u32 %p3, %r6, 0; @%p3 bra zero; setp.eq.u32 %p3, %r6, 1; @%p3 bra one; BODY bra end;
        one: BODY bra end;
        zero: BODY""",
    "one group first": """
        and.b32 %r5, %r0, 1; setp.eq.u32 %p3, %r5, 0; @%p3 bra meet; setp.eq.u32 %p3, %r6, 0; @%p3 bra meet;
        wait: ld.volatile.global.u32 %r5, [%d3]; setp.eq.u32 %p3, %r5, 0; @%p3 bra wait;
        meet: BODY setp.ne.u32 %p3, %r6, 0; @%p3 bra end; st.volatile.global.u32 [%d3], 1;""",
}
"""How lanes come to the instruction: all at once; each label's for themselves; or, where the odd lanes of other labels
wait until those of label 0 are through, with their even ones standing at the instruction all the time."""


def kernel(way: str, body: str) -> str:
    """%r6 is a lane's label, and %r4 the mask of the lanes with that label."""
    return f"""{HEADER}.entry k(.param .u64 values, .param .u64 labels, .param .u64 results, .param .u64 flag)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
mov.u32 %r0, %laneid; mov.u32 %r2, 0; setp.ne.u32 %p2, %r0, %r0;
ld.param.u64 %d0, [values]; ld.param.u64 %d1, [labels]; ld.param.u64 %d2, [results]; ld.param.u64 %d3, [flag];
mad.wide.u32 %d0, %r0, 4, %d0; mad.wide.u32 %d1, %r0, 4, %d1; mad.wide.u32 %d2, %r0, 8, %d2;
ld.global.u32 %r1, [%d0]; ld.global.u32 %r6, [%d1]; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 1;
match.any.sync.b32 %r4, %r6, -1;
{WAYS[way].replace("BODY", body)}
end: selp.b32 %r3, 1, 0, %p2; st.global.v2.b32 [%d2], {{%r2, %r3}}; ret;
}}
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_each_group_is_on_its_own(name: str, way: str) -> None:
    body, expect = INSTRUCTIONS[name]
    source = np.random.default_rng(len(name))
    for labels in (1, 3, 20):
        values = source.integers(0, 1 << 32, LANES, np.uint32)
        values[:4] = [0, 1, 0x7FFF_FFFF, 0x8000_0000]
        label = source.integers(0, labels, LANES, np.uint32)
        label[31] = 0  # a lane that waits for none
        given = values, label, np.zeros((LANES, 2), np.uint32), np.zeros(1, np.uint32)
        _, _, found, _ = run_both(kernel(way, body), "k", 1, LANES, *given).arrays
        groups = {one: np.flatnonzero(label == one).tolist() for one in range(labels)}
        expected = [expect(values.tolist(), groups[int(label[lane])], lane) for lane in range(LANES)]
        assert [tuple(row) for row in found.tolist()] == expected


SHUFFLES: Mapping[str, Callable[[int, int], int]] = {
    "up": lambda lane, step: lane - step, "down": lambda lane, step: lane + step,
    "bfly": lambda lane, step: lane ^ step, "idx": lambda lane, step: step,
}  # fmt: skip


@pytest.mark.parametrize("mode", SHUFFLES)
@pytest.mark.parametrize("threads", [LANES, 19])
@pytest.mark.parametrize("few", [1, 6, 16])
def test_a_shuffle_gives_0_of_lanes_that_are_not_active(mode: str, threads: int, few: int) -> None:
    """The first lanes alone execute it: others have gone another way, have ended, or never were."""
    text = f"""{HEADER}.entry k(.param .u64 values, .param .u64 steps, .param .u64 results)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
mov.u32 %r0, %laneid; setp.eq.u32 %p1, %r0, 18; @%p1 bra end;
ld.param.u64 %d0, [values]; ld.param.u64 %d1, [steps]; ld.param.u64 %d2, [results];
mad.wide.u32 %d0, %r0, 4, %d0; mad.wide.u32 %d1, %r0, 4, %d1; mad.wide.u32 %d2, %r0, 8, %d2;
ld.global.u32 %r1, [%d0]; ld.global.u32 %r4, [%d1];
setp.ge.u32 %p1, %r0, {few}; @%p1 bra other;
shfl.sync.{mode}.b32 %r2|%p2, %r1, %r4, {0 if mode == "up" else 31}, {(1 << few) - 1}; bra done;
other: mov.u32 %r2, 7; setp.ne.u32 %p2, %r0, %r0;
done: selp.b32 %r3, 1, 0, %p2; st.global.v2.b32 [%d2], {{%r2, %r3}};
end: ret;
}}
"""
    source = np.random.default_rng(few)
    values, steps = source.integers(1, 1 << 32, LANES, np.uint32), source.integers(0, LANES, LANES, np.uint32)
    found = run_both(text, "k", 1, threads, values, steps, np.zeros((LANES, 2), np.uint32)).arrays[2]
    for lane in range(few):
        read = SHUFFLES[mode](lane, int(steps[lane]))
        expected = (int(values[read]) if read < few else 0, 1) if 0 <= read < LANES else (int(values[lane]), 0)
        assert tuple(found[lane].tolist()) == expected


def test_a_shuffle_reads_active_lanes_that_a_mask_leaves_out_as_an_h200_does() -> None:
    """Each half names itself and reads the other one: recorded on an H200, whatever the manual leaves open."""
    text = f"""{HEADER}.entry k(.param .u64 results)
{{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<2>;
mov.u32 %r0, %laneid; setp.lt.u32 %p1, %r0, 16; selp.b32 %r1, 0xFFFF, 0xFFFF0000, %p1;
xor.b32 %r2, %r0, 16; add.u32 %r3, %r0, 100; shfl.sync.idx.b32 %r4, %r3, %r2, 31, %r1;
ld.param.u64 %d0, [results]; mad.wide.u32 %d0, %r0, 4, %d0; st.global.u32 [%d0], %r4; ret;
}}
"""
    (found,) = run_both(text, "k", 1, LANES, np.zeros(LANES, np.uint32)).arrays
    assert found.tolist() == [100 + (lane ^ 16) for lane in range(LANES)]
