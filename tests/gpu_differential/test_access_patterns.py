"""Counters of memory requests: against plain sets of bytes, words and sectors, and on both executors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from both import HEADER, run_both
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LANES = 32
SPAN = 4096
"""Bytes that the kernels reach into."""
SHAPES = {
    "u8": (1, 1), "u16": (2, 1), "u32": (4, 1), "u64": (8, 1),
    "v2.u32": (4, 2), "v4.u32": (4, 4), "v2.u64": (8, 2), "v4.u8": (1, 4),
}  # fmt: skip
"""Elements of an access: bytes of one, how many."""


def kernel(space: str, kind: str, shape: str) -> str:
    """A kernel whose lane i reaches for the byte offset `offsets[i]`, if it is not negative."""
    size, count = SHAPES[shape]
    letter = "d" if size == 8 else "r"
    registers = [f"%{letter}{8 + i}" for i in range(count)]
    values = registers[0] if count == 1 else f"{{{', '.join(registers)}}}"
    bits = "u32" if size < 8 else "u64"
    if kind == "load":
        adds = " ".join(f"add.{bits} %{letter}7, %{letter}7, {register};" for register in registers)
        access = f"@%p1 ld.{space}.{shape} {values}, [%d3]; {adds}"
    else:
        moves = " ".join(f"mov.{bits} {register}, {3 + i};" for i, register in enumerate(registers))
        access = f"{moves} @%p1 st.{space}.{shape} [%d3], {values};"
    base = "mov.u64 %d2, tile;" if space == "shared" else "ld.param.u64 %d2, [data];"
    return f"""{HEADER}.shared .align 16 .b8 tile[{SPAN}];
.entry access(.param .u64 offsets, .param .u64 data, .param .u64 out)
{{
.reg .pred %p<2>; .reg .b32 %r<16>; .reg .b64 %d<16>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [offsets]; mad.wide.u32 %d0, %r0, 4, %d0; ld.global.s32 %r1, [%d0];
ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r0, 8, %d1; setp.ge.s32 %p1, %r1, 0; {base}
cvt.u64.u32 %d3, %r1; add.u64 %d3, %d3, %d2;
{access}
st.global.{bits} [%d1], %{letter}7;
ret;
}}
"""


def counted(space: str, kind: str, shape: str, offsets: Sequence[int]) -> Mapping[str, int]:
    """The counters of one warp's access, those of the kernel's other accesses taken off."""
    data, out = np.arange(SPAN, dtype=np.uint8), np.zeros(LANES, np.uint64)
    both = [
        run_both(kernel(space, kind, shape), "access", 1, LANES, np.array(where, np.int32), data, out).counters
        for where in (offsets, [-1] * LANES)
    ]
    prefix = f"{space}.{kind}."
    names = [name for name in both[0] if name.startswith(prefix)]
    return {name.removeprefix(prefix): both[0][name] - both[1].get(name, 0) for name in names}


def expected(space: str, kind: str, shape: str, offsets: Sequence[int]) -> Mapping[str, int]:
    """The same by sets."""
    size, count = SHAPES[shape]
    reached = {lane: range(start, start + size * count) for lane, start in enumerate(offsets) if start >= 0}
    if not reached:
        return {}
    tally = {"requests": 1, "bytes": sum(map(len, reached.values()))}
    if space == "global":
        return tally | {"sectors": len({byte // 32 for places in reached.values() for byte in places})}
    lanes = _served_together(kind, size * count, reached)
    words: dict[tuple[int, int], set[int]] = defaultdict(set)
    for lane, places in reached.items():
        for byte in places:
            words[lane // lanes, byte // 4 % 32].add(byte // 4)
    phases = {phase for phase, _ in words}
    waves = [max(len(found) for (one, _), found in words.items() if one == phase) for phase in phases]
    return tally | {"wavefronts": sum(waves), "bank_conflicts": sum(waves) - len(waves)}


def _served_together(kind: str, bytes_: int, reached: Mapping[int, range]) -> int:
    """Lanes of a phase, as recorded on an H200 (tests/data/hardware)."""
    if bytes_ <= 4 or (bytes_ == 8 and kind == "load"):
        return 32
    if bytes_ == 8:
        return 16
    pairs = [(reached[lane], reached[lane + 1]) for lane in reached if lane % 2 == 0 and lane + 1 in reached]
    return 16 if kind == "load" and all(even == odd for even, odd in pairs) else 8


def check(space: str, kind: str, shape: str, offsets: Sequence[int]) -> None:
    found = counted(space, kind, shape, offsets)
    wanted = expected(space, kind, shape, offsets)
    assert {name: value for name, value in found.items() if name != "compulsory_bytes" and value} == {
        name: value for name, value in wanted.items() if value
    }


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
