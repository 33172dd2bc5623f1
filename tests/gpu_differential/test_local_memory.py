"""Local memory, whose words lie among those of the other lanes: every width, offsets that lanes share or do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from both import run_both
from numpy.typing import NDArray

from triptych.core.errors import MemoryFault

HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"
THREADS = 40
BYTES = 64
"""Of each thread's array."""
RESULT_BYTES = 16 + BYTES
"""Of a step: what it loads, and the whole array."""


@dataclass(frozen=True)
class Width:
    """A type's suffix, the bytes of an element and how many there are."""

    suffix: str
    size: int
    count: int = 1

    @property
    def bytes(self) -> int:
        return self.size * self.count

    def registers(self, name: str) -> str:
        kind = {8: "d", 16: "q"}.get(self.size, "r")
        parts = [f"%{name}{kind}{index}" for index in range(self.count)]
        return parts[0] if self.count == 1 else f"{{{', '.join(parts)}}}"


@dataclass(frozen=True)
class Step:
    """Which offset, in elements of the width, and which lanes: PTX and numpy."""

    offset: str
    """Sets %o to the element."""
    guard: str = ""
    """Sets %p."""

    def elements(self, tid: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return {"mov.u32 %o, 2;": tid * 0 + 2, "mov.u32 %o, %n;": tid * 0 + n}.get(self.offset, tid * 5)

    def active(self, tid: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not self.guard:
            return tid >= 0
        return tid > 20 if self.guard.startswith("setp.gt") else tid % 2 == 0


WIDTHS = [
    Width("u8", 1), Width("v2.u8", 1, 2), Width("v4.u8", 1, 4), Width("u16", 2), Width("v2.u16", 2, 2),
    Width("v4.u16", 2, 4), Width("b32", 4), Width("v2.b32", 4, 2), Width("v4.b32", 4, 4), Width("b64", 8),
    Width("v2.b64", 8, 2), Width("b128", 16),
]  # fmt: skip
EVEN, LATE = "and.b32 %t, %tid, 1; setp.eq.u32 %p, %t, 0;", "setp.gt.u32 %p, %tid, 20;"
STEPS = [
    Step(offset, guard)
    for offset in ("mov.u32 %o, 2;", "mov.u32 %o, %n;", "mul.lo.u32 %o, %tid, 5;")
    for guard in ("", EVEN, LATE)
]


def kernel(width: Width) -> str:
    """Each step stores and loads in local memory, the next one by generic addresses, and tells what it found."""
    lines = [f"st.local.b32 [own+{4 * word}], {word * 0x01030507:#x};" for word in range(BYTES // 4)]
    for number, step in enumerate(STEPS):
        space, base = (".local", "%own") if number % 2 == 0 else ("", "%any")
        lines += [
            f"mad.lo.u32 %r0, %tid, 0x9E3779B1, {number}; mul.lo.u32 %r1, %r0, 0x85EBCA6B;",
            "mul.lo.u32 %r2, %r1, 0x85EBCA6B; mul.lo.u32 %r3, %r2, 0x85EBCA6B;",
            "mov.b64 %d0, {%r0, %r1}; mov.b64 %d1, {%r2, %r3}; mov.b128 %q0, {%d0, %d1};",
            *(f"mov.b32 %lr{i}, 0;" for i in range(4)),
            "mov.b64 %ld0, 0; mov.b64 %ld1, 0; mov.b128 %lq0, {%ld0, %ld1};",
            f"setp.ge.u32 %p, %tid, 0; {step.offset} {step.guard} and.b32 %o, %o, {BYTES // width.bytes - 1};",
            f"mad.wide.u32 %at, %o, {width.bytes}, {base};",
            f"@%p st{space}.{width.suffix} [%at], {width.registers('')};",
            f"@%p ld{space}.{width.suffix} {width.registers('l')}, [%at];",
            f"st.global.{width.suffix} [%out+{number * RESULT_BYTES}], {width.registers('l')};",
        ]  # fmt: skip
        for part in range(0, BYTES, 16):
            place = number * RESULT_BYTES + 16 + part
            lines += [f"ld.local.v4.b32 {{%r0, %r1, %r2, %r3}}, [own+{part}];"]
            lines += [f"st.global.v4.b32 [%out+{place}], {{%r0, %r1, %r2, %r3}};"]
    body = "\n".join(lines)
    return f"""{HEADER}.entry kernel(.param .u64 out, .param .u32 n)
{{
.reg .pred %p; .reg .b32 %r<4>, %lr<4>, %o, %t, %tid, %n; .reg .b64 %d<2>, %ld<2>, %own, %any, %at, %out;
.reg .b128 %q<1>, %lq<1>; .local .align 16 .b8 own[{BYTES}];
mov.u32 %tid, %tid.x; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];
mad.wide.u32 %out, %tid, {len(STEPS) * RESULT_BYTES}, %out; mov.u64 %own, own; cvta.local.u64 %any, %own;
{body}
ret;
}}
"""


def expected(width: Width, n: int) -> NDArray[np.uint8]:
    tid = np.arange(THREADS)
    own = np.zeros((THREADS, BYTES), np.uint8)
    own[:] = (np.arange(BYTES // 4, dtype=np.uint32) * 0x01030507).view(np.uint8)
    found = np.zeros((THREADS, len(STEPS), RESULT_BYTES), np.uint8)
    for number, step in enumerate(STEPS):
        words = [(tid.astype(np.uint32) * np.uint32(0x9E3779B1) + np.uint32(number)).astype(np.uint32)]
        for _ in range(3):
            words.append((words[-1] * np.uint32(0x85EBCA6B)).astype(np.uint32))
        given = np.stack(words, axis=1).view(np.uint8)
        if width.size < 4:  # the low ends of registers
            given = given.reshape(THREADS, 4, 4)[:, : width.count, : width.size].reshape(THREADS, -1)
        places = step.elements(tid, n) % (BYTES // width.bytes) * width.bytes
        for lane in tid[step.active(tid)]:
            value = given[lane, : width.bytes]
            own[lane, places[lane] : places[lane] + width.bytes] = value
            found[lane, number, : width.bytes] = value
        found[:, number, 16:] = own
    return found


@pytest.mark.parametrize("width", WIDTHS, ids=lambda width: width.suffix)
def test_every_width_at_every_kind_of_offset(width: Width) -> None:
    n = BYTES // width.bytes - 1
    (out,) = run_both(
        kernel(width), "kernel", 1, THREADS, np.zeros((THREADS, len(STEPS), RESULT_BYTES), np.uint8), np.uint32(n)
    ).arrays
    np.testing.assert_array_equal(out, expected(width, n))


SMALL = """.entry kernel(.param .u64 out, .param .u64 offset)
{{
.reg .pred %p; .reg .b32 %r<4>, %tid; .reg .b64 %d<4>; .local .align 16 .b8 own[9];
mov.u32 %tid, %tid.x; ld.param.u64 %d0, [out]; ld.param.u64 %d1, [offset]; mad.wide.u32 %d0, %tid, 4, %d0;
mov.u64 %d2, own; add.u64 %d2, %d2, %d1; {change}
{access}
st.global.b32 [%d0], %r0; ret;
}}
"""
GENERIC = "cvta.local.u64 %d2, %d2;"


@pytest.mark.parametrize("spread", ["", "cvt.u64.u32 %d3, %tid; and.b64 %d3, %d3, 0; add.u64 %d2, %d2, %d3;"])
@pytest.mark.parametrize(
    ("access", "fine", "beyond"),
    [
        ("ld.local.u8 %r0, [%d2];", 8, (9, 1 << 32, (1 << 64) - 1)),
        ("ld.local.b32 %r0, [%d2];", 4, (8, 1, (1 << 64) - 4)),
        ("st.local.b64 [%d2], %d0;", 0, (8, 4)),
        (f"{GENERIC} ld.v2.u16 {{%r0, %r1}}, [%d2];", 4, (8, 2)),
    ],
)
def test_what_lies_beyond_a_thread_or_is_misaligned_is_a_fault(
    access: str, fine: int, beyond: tuple[int, ...], spread: str
) -> None:
    text = HEADER + SMALL.format(access=access, change=spread)
    out = np.zeros(32, np.uint32)
    run_both(text, "kernel", 1, 32, out, np.uint64(fine), counted=False)
    for offset in beyond:
        for executor in ("generated", "oracle"):
            with pytest.raises(MemoryFault):
                run_both(text, "kernel", 1, 32, out, np.uint64(offset), only=executor)


@pytest.mark.parametrize("operation", ["atom.add.u32 %r0, [%d2], 1;", "red.add.u64 [%d2], 1;"])
def test_atomic_operations_do_not_reach_it(operation: str) -> None:
    text = HEADER + SMALL.format(access=f"{GENERIC} {operation}", change="")
    for executor in ("generated", "oracle"):
        with pytest.raises(MemoryFault, match=r"Invalid __local__ atomic of size (4|8) bytes") as error:
            run_both(text, "kernel", 1, 32, np.zeros(32, np.uint32), np.uint64(0), only=executor)
        assert "atomic operations" in error.value.message


def test_a_new_block_finds_poison_not_what_the_last_one_left() -> None:
    text = f"""{HEADER}.entry kernel(.param .u64 out)
{{
.reg .b32 %r<4>; .reg .b64 %d<2>; .local .align 4 .b8 own[8];
ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %d0, %r0, 8, %d0; ld.local.v2.b32 {{%r1, %r2}}, [own];
st.local.v2.b32 [own], {{%r0, %r0}}; st.global.v2.b32 [%d0], {{%r1, %r2}}; ret;
}}
"""
    (out,) = run_both(text, "kernel", 20, 1, np.zeros((20, 2), np.uint32)).arrays
    assert set(out.ravel().tolist()) == {0xA5A5A5A5}
