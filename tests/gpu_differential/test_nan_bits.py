"""Bits of NaN wherever a kernel can see them: arithmetic makes the canonical one, moving keeps what was there."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

CANONICAL = 0x7FFF_FFFF
PAYLOAD = 0xFFC0_1234
"""What every lane loads into %f0 and %r0; %f1 is 1."""
SIGNALLING = 0x7F80_0001

MADE = [
    "add.f32 %f2, %f0, %f1; st.global.f32 [%d1], %f2;",
    "fma.rn.f32 %f2, %f1, %f0, %f1; mov.b32 %r2, %f2; st.global.b32 [%d1], %r2;",
    "fma.rn.f32 %r2, %r0, %r0, %r0; st.global.b32 [%d1], %r2;",
    "mul.f32 %f2, %f0, %f1; mov.b32 %r2, %f2; shl.b32 %r2, %r2, 1; shr.u32 %r2, %r2, 1; st.global.b32 [%d1], %r2;",
    "neg.f32 %f2, %f0; mov.f32 %f3, %f2; st.global.f32 [%d1], %f3;",
    "add.f32 %f2, %f0, %f1; selp.f32 %f3, %f2, %f1, %p1; st.global.f32 [%d1], %f3;",
    "add.f32 %f2, %f0, %f1; selp.f32 %f3, %f2, %f0, %p1; st.global.f32 [%d1], %f3;",
    "mov.f32 %f2, 0f00000000; @%p1 sub.f32 %f2, %f2, %f0; st.global.f32 [%d1], %f2;",
    "mov.f32 %f2, %f0; @%p1 sub.f32 %f2, %f2, %f0; st.global.f32 [%d1], %f2;",
    "add.f32 %f2, %f0, %f1; st.shared.f32 [shared], %f2; ld.shared.b32 %r2, [shared]; st.global.b32 [%d1], %r2;",
    "add.f32 %f2, %f0, %f1; atom.global.exch.b32 %r2, [%d1], %f2;",
    "add.f32 %r2, %r0, %r0; atom.global.exch.b32 %r3, [%d1], %r2;",
    "sqrt.rn.f32 %f2, %f0; mov.b32 %r2, %f2; shfl.sync.idx.b32 %r3, %r2, 3, 31, -1; st.global.b32 [%d1], %r3;",
    "div.rn.f32 %f2, %f0, %f1; mov.b64 %d2, {%f2, %f1}; st.global.b32 [%d1], %d2;",
    "add.f32 %f2, %f0, %f1; mov.b32 {%h0, %h1}, %f2; mov.b32 %r2, {%h0, %h1}; st.global.b32 [%d1], %r2;",
    "add.f32 %f2, %f0, %f1; add.f32 %f2, %f2, %f1; cvt.f64.f32 %e0, %f2; cvt.rn.f32.f64 %f3, %e0; "
    "st.global.f32 [%d1], %f3;",
    "add.f32 %f2, %f0, %f1; copysign.f32 %f2, %f1, %f2; st.global.f32 [%d1], %f2;",
    "lg2.approx.f32 %f2, %f0; st.global.f32 [%d1], %f2;",
    "sqrt.rn.f32 %f2, %f0; st.global.f32 [%d1], %f2;",
    "neg.f32 %f2, %f1; sqrt.approx.f32 %f2, %f2; st.global.f32 [%d1], %f2;",
    "mov.u32 %r3, 0; mov.f32 %f2, 0f00000000; AGAIN: add.f32 %f2, %f2, %f0; add.u32 %r3, %r3, 1; "
    "setp.lt.u32 %p2, %r3, 3; @%p2 bra AGAIN; st.global.f32 [%d1], %f2;",
    "mov.f32 %f2, %f0; mov.u32 %r3, 0; AGAIN: add.f32 %f2, %f2, %f1; add.u32 %r3, %r3, 1; "
    "setp.lt.u32 %p2, %r3, %r1; @%p2 bra AGAIN; st.global.f32 [%d1], %f2;",
]
KEPT = [
    "mov.f32 %f2, %f0; st.global.f32 [%d1], %f2;",
    "add.f32 %f2, %f0, %f1; selp.f32 %f3, %f0, %f2, %p1; st.global.f32 [%d1], %f3;",
    "add.f32 %f2, %f0, %f1; @%p1 mov.f32 %f2, %f0; st.global.f32 [%d1], %f2;",
    "mov.b32 %f2, %r0; st.global.b32 [%d1], %f2;",
    "shfl.sync.idx.b32 %f2, %f0, 1, 31, -1; st.global.f32 [%d1], %f2;",
    "cvt.f32.f32 %f2, %f0; st.global.f32 [%d1], %f2;",
    "mov.f32 %f2, %f0; mov.u32 %r3, 0; AGAIN: @!%p1 add.f32 %f2, %f2, %f1; add.u32 %r3, %r3, 1; "
    "setp.lt.u32 %p2, %r3, %r1; @%p2 bra AGAIN; st.global.f32 [%d1], %f2;",
]


def kernel(body: str) -> str:
    return f"""{HEADER}.entry k(.param .u64 from, .param .u64 to)
{{
.reg .pred %p<3>; .reg .b16 %h<2>; .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .f32 %f<4>; .reg .f64 %e<2>;
.shared .align 4 .b32 shared;
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to]; mov.u32 %r1, %tid.x;
mad.wide.u32 %d0, %r1, 4, %d0; mad.wide.u32 %d1, %r1, 4, %d1;
ld.global.b32 %r0, [%d0]; ld.global.f32 %f0, [%d0]; mov.f32 %f1, 0f3F800000; setp.ge.u32 %p1, %r1, 0;
{body}
ret;
}}
"""


def results(body: str, loaded: int) -> set[int]:
    source = np.full(32, loaded, np.uint32)
    _, target = run_both(kernel(body), "k", 1, 32, source, np.zeros_like(source)).arrays
    return set(target.tolist())


@pytest.mark.parametrize("loaded", [PAYLOAD, SIGNALLING])
@pytest.mark.parametrize("body", MADE)
def test_arithmetic_makes_the_canonical_nan(body: str, loaded: int) -> None:
    assert results(body, loaded) == {CANONICAL}


@pytest.mark.parametrize("loaded", [PAYLOAD, SIGNALLING])
@pytest.mark.parametrize("body", KEPT)
def test_what_only_moves_keeps_its_bits(body: str, loaded: int) -> None:
    assert results(body, loaded) == {loaded}


@pytest.mark.parametrize(
    ("operation", "kept"),
    [("add.f64 %e2, %e0, %e1", 1), ("mul.f64 %e2, %e0, %e1", 1), ("sub.rz.f64 %e2, %e0, %e1", 1),
     ("div.rn.f64 %e2, %e0, %e1", 0), ("fma.rn.f64 %e2, %e0, %e1, %e0", 1),
     ("fma.rn.f64 %e2, %e0, 0d3FF0000000000000, %e1", 1),
     ("add.f64 %e2, %e0, 0d3FF0000000000000", 0), ("neg.f64 %e2, %e0", 0), ("abs.f64 %e2, %e0", 0)],
)  # fmt: skip
def test_doubles_keep_one_of_their_nan(operation: str, kept: int) -> None:
    text = f"""{HEADER}.entry k(.param .u64 from, .param .u64 to)
{{
.reg .b32 %r<2>; .reg .b64 %d<3>; .reg .f64 %e<3>;
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to]; mov.u32 %r1, %tid.x;
mad.wide.u32 %d0, %r1, 16, %d0; mad.wide.u32 %d1, %r1, 8, %d1;
ld.global.v2.f64 {{%e0, %e1}}, [%d0]; {operation}; st.global.f64 [%d1], %e2;
ret;
}}
"""
    source = np.ones((32, 2)).view(np.uint64)
    source[7] = 0x7FF0_0000_0000_1234, 0xFFF8_0000_0000_0077  # one lane alone: the rare way serves all
    _, target = run_both(text, "k", 1, 32, source, np.zeros(32, np.uint64)).arrays
    assert target[7] == source[7, kept] | np.uint64(1 << 51)
    assert np.isfinite(target.view(np.float64)[np.arange(32) != 7]).all()
