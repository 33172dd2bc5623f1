"""Which loops may wait for other threads."""

from __future__ import annotations

import pytest

from triptych.gpu.flow import build_blocks, find_waits, order_blocks
from triptych.gpu.isa.binding import bind
from triptych.gpu.syntax import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
CAS = "atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0;"
COUNT = "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 99;"


def waits(body: str) -> int:
    """How many back edges wait."""
    registers = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .b32 s[9];"
    text = f"{HEADER}.entry k()\n{{ {registers}\n{body}\nret; }}"
    graph = order_blocks(build_blocks(parse(text).functions["k"])).graph
    return len(find_waits(graph, lambda i: bind(i).uses, lambda i: bind(i).defines))


@pytest.mark.parametrize(
    "body",
    [
        f"a: {CAS} @%p1 bra a;",
        "a: ld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        "a: ld.acquire.gpu.u32 %r1, [%d1]; xor.b32 %r3, %r1, %r4; setp.gt.s32 %p1, %r3, -1; @%p1 bra a;",
        "a: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        # A flag that is set under control of what was seen.
        f"mov.u32 %r5, 0; a: {CAS} @%p1 bra b; mov.u32 %r5, 1; b: setp.eq.u32 %p3, %r5, 0; @%p3 bra a;",
        # An exit under control of what was seen.
        f"a: {CAS} @%p1 bra b; {COUNT} @%p2 bra c; b: bra a; c:",
        # Loads that compilers would have moved out of the loop.
        "a: ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        "a: st.global.u32 [%d2], 0; membar.gl; ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
    ],
)
def test_loops_that_may_wait(body: str) -> None:
    assert waits(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        f"a: {COUNT} @%p2 bra a;",
        # What was seen does not decide how long the loop runs.
        f"a: atom.global.add.u32 %r1, [%d1], 1; st.global.u32 [%d2], %r1; {COUNT} @%p2 bra a;",
        f"a: {CAS} @%p1 bra b; st.global.u32 [%d2], 1; b: {COUNT} @%p2 bra a;",
        f"a: ld.volatile.global.u32 %r1, [%d1]; {COUNT} @%p2 bra a;",
        # A list, a search: the address moves on.
        "a: ld.global.u64 %d1, [%d1]; setp.ne.u64 %p1, %d1, 0; @%p1 bra a;",
        "a: add.u64 %d1, %d1, 4; ld.global.u32 %r1, [%d1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra a;",
        # The loop may change the place itself.
        "a: st.global.u32 [%d2], 0; ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        "a: ld.global.nc.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        "a: ld.volatile.local.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        "a: red.global.add.u32 [%d1], 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra a;",
        f"{CAS} @%p1 bra b; add.u32 %r2, %r2, 1; b:",
    ],
)
def test_loops_that_do_not(body: str) -> None:
    assert waits(body) == 0


def test_a_loop_around_one_that_waits_does_not_wait_itself() -> None:
    assert waits(f"b: mov.u32 %r3, 0; a: {CAS} @%p1 bra a; {COUNT} @%p2 bra b;") == 1
