"""Carry chains: numbers of 128 bits from halves and words, carries under guards and across branches."""

from __future__ import annotations

import random

import numpy as np
import pytest
from both import HEADER, run_both

CASES = 64
SOURCE = random.Random(7)
EDGES = [0, 1, (1 << 64) - 1, 1 << 64, (1 << 127) - 1, 1 << 127, (1 << 128) - 1]
NUMBERS = [
    *((SOURCE.choice(EDGES), SOURCE.getrandbits(128)) for _ in range(CASES // 2)),
    *((SOURCE.getrandbits(128), SOURCE.choice([*EDGES, SOURCE.getrandbits(128)])) for _ in range(CASES // 2)),
]


def run(body: str) -> list[int]:
    """Each thread's number {%d6, %d5} from {%d2, %d1} and {%d4, %d3}; words of them are %r1 … %r8."""
    text = f"""{HEADER}.entry k(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [in]; mad.wide.u32 %d0, %r0, 32, %d0;
ld.global.v2.u64 {{%d1, %d2}}, [%d0]; ld.global.v2.u64 {{%d3, %d4}}, [%d0+16];
mov.b64 {{%r1, %r2}}, %d1; mov.b64 {{%r3, %r4}}, %d2; mov.b64 {{%r5, %r6}}, %d3; mov.b64 {{%r7, %r8}}, %d4;
{body}
ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r0, 16, %d0; st.global.v2.u64 [%d0], {{%d5, %d6}}; ret;
}}
"""
    whole = b"".join(a.to_bytes(16, "little") + b.to_bytes(16, "little") for a, b in NUMBERS)
    given = np.frombuffer(whole, np.uint64).copy()
    _, found = run_both(text, "k", 1, CASES, given, np.zeros((CASES, 2), np.uint64)).arrays
    return [int(low) | int(high) << 64 for low, high in found]


def wrapped(values: list[int]) -> list[int]:
    return [value % (1 << 128) for value in values]


ADD_WORDS = """add.cc.u32 %r9, %r1, %r5; addc.cc.u32 %r10, %r2, %r6; addc.cc.u32 %r11, %r3, %r7;
    addc.u32 %r12, %r4, %r8;
    mov.b64 %d5, {%r9, %r10}; mov.b64 %d6, {%r11, %r12};"""


@pytest.mark.parametrize("body", ["add.cc.u64 %d5, %d1, %d3; addc.u64 %d6, %d2, %d4;", ADD_WORDS])
def test_sums(body: str) -> None:
    assert run(body) == wrapped([a + b for a, b in NUMBERS])


def test_differences() -> None:
    assert run("sub.cc.u64 %d5, %d1, %d3; subc.u64 %d6, %d2, %d4;") == wrapped([a - b for a, b in NUMBERS])


def test_products() -> None:
    body = """mul.lo.u64 %d5, %d1, %d3; mul.hi.u64 %d6, %d1, %d3; mad.lo.u64 %d6, %d1, %d4, %d6;
        mad.lo.u64 %d6, %d2, %d3, %d6;"""
    assert run(body) == wrapped([a * b for a, b in NUMBERS])
    low = (1 << 64) - 1
    body = "mad.lo.cc.u64 %d5, %d1, %d3, %d2; madc.hi.u64 %d6, %d1, %d3, %d4;"
    expected = [(a & low) * (b & low) + (a >> 64) + (b >> 64 << 64) for a, b in NUMBERS]
    assert run(body) == wrapped(expected)


def test_a_guard_keeps_the_carry() -> None:
    """Odd threads keep the carry of the first sum; for the others a second one clears it."""
    body = """and.b32 %r9, %r0, 1; setp.eq.u32 %p1, %r9, 0; add.cc.u64 %d5, %d1, %d3; @%p1 add.cc.u64 %d7, 0, 0;
        addc.u64 %d6, %d2, %d4;"""
    low = (1 << 64) - 1
    lost = [((a & low) + (b & low) >> 64 << 64) * (thread % 2 == 0) for thread, (a, b) in enumerate(NUMBERS)]
    assert run(body) == wrapped([a + b - carry for (a, b), carry in zip(NUMBERS, lost, strict=True)])


def test_a_carry_lives_across_branches() -> None:
    body = """setp.gt.u32 %p1, %r0, 20; add.cc.u64 %d5, %d1, %d3; @%p1 bra far; addc.u64 %d6, %d2, %d4; bra.uni join;
        far: addc.u64 %d6, %d4, %d2; join: """
    assert run(body) == wrapped([a + b for a, b in NUMBERS])
