"""Which waiting loops only mbarriers let go on."""

from __future__ import annotations

import pytest

from triptych.gpu.flow import build_blocks, find_standing_waits, find_waits, order_blocks
from triptych.gpu.isa.binding import bind
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Instruction

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
TRY = "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;"


def uses(instruction: Instruction) -> frozenset[str]:
    return bind(instruction).uses


def defines(instruction: Instruction) -> frozenset[str]:
    return bind(instruction).defines


def standing(body: str) -> tuple[int, int]:
    """How many back edges wait, and how many of them are of loops that stand."""
    registers = ".reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .b64 s[9];"
    text = f"{HEADER}.entry k()\n{{ {registers}\n{body}\nret; }}"
    graph = order_blocks(build_blocks(parse(text).functions["k"])).graph
    waits = find_waits(graph, uses, defines)
    found = find_standing_waits(graph, waits, uses, defines)
    assert found <= waits
    return len(waits), len(found)


@pytest.mark.parametrize(
    "body",
    [
        f"a: {TRY} @!%p1 bra a;",
        f"a: {TRY} @%p1 bra b; bra a; b:",
        f"a: {TRY} @%p1 bra b; nanosleep.u32 100; bra a; b:",
        "a: mbarrier.test_wait.shared.b64 %p1, [%r1], %d1; selp.u32 %r3, 1, 0, %p1; setp.eq.u32 %p2, %r3, 0;"
        " @%p2 bra a;",
        # Of two mbarriers either lets it go on.
        f"a: {TRY} mbarrier.try_wait.parity.shared.b64 %p2, [%r1+8], %r2; or.pred %p3, %p1, %p2; @!%p3 bra a;",
        # What goes on from iteration to iteration, and the clock, decide how long it sleeps, not whether it is left.
        f"a: {TRY} @%p1 bra b; add.u32 %r4, %r4, 1; mov.u32 %r5, %clock; sub.u32 %r5, %r5, %r4;"
        " nanosleep.u32 %r5; bra a; b:",
    ],
)  # fmt: skip
def test_loops_that_stand(body: str) -> None:
    assert standing(body) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        # It ends some time.
        f"a: {TRY} add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 99; @%p1 bra b; @%p2 bra a; b:",
        f"a: {TRY} mov.u32 %r5, %clock; setp.lt.u32 %p2, %r5, %r4; @%p1 bra b; @%p2 bra a; b:",
        # Each iteration looks elsewhere.
        f"a: xor.b32 %r2, %r2, 1; {TRY} @!%p1 bra a;",
        # Others may let it go on.
        f"a: {TRY} ld.volatile.global.u32 %r5, [%d1]; setp.eq.u32 %p2, %r5, 0; @%p1 bra b; @%p2 bra a; b:",
        "a: ld.volatile.shared.u32 %r5, [s]; setp.eq.u32 %p1, %r5, 0; @%p1 bra a;",
        # It does something.
        f"a: mbarrier.arrive.shared.b64 %d2, [%r1]; {TRY} @!%p1 bra a;",
        f"a: {TRY} st.global.u32 [%d1], %r5; @!%p1 bra a;",
        "a: mbarrier.arrive.shared.b64 %d1, [%r1]; mbarrier.test_wait.shared.b64 %p1, [%r1], %d1; @!%p1 bra a;",
    ],
)
def test_loops_that_do_not(body: str) -> None:
    assert standing(body) == (1, 0)


def test_a_loop_in_which_nobody_waits() -> None:
    assert standing(f"a: {TRY} add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 99; @%p2 bra a;") == (0, 0)
