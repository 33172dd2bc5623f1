"""Kernels of one memory request, whose counters are those of plain sets of bytes, words and sectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from both import HEADER, run_both

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
    """Runs a kernel on both executors, and compares what they count with sets."""
    found = counted(space, kind, shape, offsets)
    wanted = expected(space, kind, shape, offsets)
    assert {name: value for name, value in found.items() if name != "compulsory_bytes" and value} == {
        name: value for name, value in wanted.items() if value
    }
