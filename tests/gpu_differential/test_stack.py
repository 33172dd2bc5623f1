"""`alloca`, `stacksave` and `stackrestore`: places, what is given back, and what there is no room for."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

import triptych as tt
from triptych.core.errors import MemoryFault, PtxSyntaxError, UnsupportedFeature

LANES = 32


def kernel(body: str, more: str = "") -> str:
    """A kernel with 12 bytes of local variables; %n is 8, 16, 24 … 256 by thread, as is %w."""
    return f"""{HEADER}{more}.visible .entry k(.param .u64 out)
{{
.reg .pred %p; .reg .b32 %r<8>, %t, %w, %u<4>; .reg .b64 %d<8>, %n, %to; .local .align 4 .b32 own[3];
ld.param.u64 %to, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %to, %t, 32, %to; mad.lo.u32 %w, %t, 8, 8; cvt.u64.u32 %n, %w;
mov.u32 %r0, 77; st.local.u32 [own], %r0; st.local.u32 [own+8], %r0;
{body}
ret; }}
"""


def run(body: str, more: str = "") -> np.ndarray:
    """What each thread leaves in four places of 8 bytes."""
    text = kernel(body, more)
    return run_both(text, "k", 1, LANES, np.zeros((LANES, 4), np.int64)).arrays[0]


SIZES = 8 * np.arange(1, LANES + 1)


def test_places_lie_below_each_other() -> None:
    found = run("""stacksave.u64 %d0; alloca.u64 %d1, %n; stacksave.u64 %d2; alloca.u64 %d3, 5;
st.global.u64 [%to], %d0; st.global.u64 [%to+8], %d1; st.global.u64 [%to+16], %d2; st.global.u64 [%to+24], %d3;""")
    top, first, pointer, second = found.T
    assert (top == top[0]).all()
    assert (top[0] - first >= SIZES).all()
    assert (top[0] - first < SIZES + 8).all()
    assert (pointer == first).all()
    assert (first - second == 8).all()


@pytest.mark.parametrize("align", [1, 8, 16, 64, 1024])
def test_alignment(align: int) -> None:
    found = run(
        f"""alloca.u64 %d1, 4; alloca.u64 %d2, %n, {align}; st.global.u64 [%to], %d1; st.global.u64 [%to+8], %d2;"""
    )
    assert (found[:, 1] % max(align, 8) == 0).all()
    assert (found[:, 0] - found[:, 1] >= SIZES).all()
    assert (found[:, 0] - found[:, 1] < SIZES + max(align, 8)).all()


def test_what_is_allocated_holds_values_and_disturbs_no_variable() -> None:
    found = run("""alloca.u64 %d1, %n; alloca.u64 %d2, 8; st.local.u64 [%d1], %n; st.local.u64 [%d2], %to;
add.u64 %d3, %d1, %n; st.local.u32 [%d3-4], %t; cvta.local.u64 %d4, %d1; ld.u32 %r1, [%d4]; ld.local.u32 %r2, [%d3-4];
ld.local.u32 %r3, [own+8]; cvt.u64.u32 %d5, %r1; st.global.u64 [%to], %d5; cvt.u64.u32 %d5, %r2;
st.global.u64 [%to+8], %d5; cvt.u64.u32 %d5, %r3; st.global.u64 [%to+16], %d5;""")
    assert (found[:, 0] == SIZES).all()
    assert (found[:, 1] == np.arange(LANES)).all()
    assert (found[:, 2] == 77).all()


def test_what_is_restored_is_allocated_again() -> None:
    found = run("""mov.u32 %r1, 0; stacksave.u32 %r2;
again: alloca.u32 %r3, %w; st.local.u32 [%r3], %r1; stackrestore.u32 %r2; add.u32 %r1, %r1, 1;
setp.lt.u32 %p, %r1, 1000; @%p bra again; alloca.u32 %r4, %w; sub.u32 %r5, %r3, %r4; ld.local.u32 %r6, [%r4];
cvt.u64.u32 %d0, %r5; st.global.u64 [%to], %d0; cvt.u64.u32 %d0, %r6; st.global.u64 [%to+8], %d0;""")
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] == 999).all()


def test_lanes_that_part_have_stacks_of_their_own() -> None:
    found = run("""and.b32 %r1, %t, 3; setp.eq.u32 %p, %r1, 0; stacksave.u64 %d0; mov.u64 %d1, %d0; @%p bra there;
alloca.u64 %d1, %n; @!%p bra there; alloca.u64 %d1, 100000;
there: alloca.u64 %d2, 16; sub.u64 %d3, %d0, %d1; sub.u64 %d4, %d1, %d2; st.global.u64 [%to], %d3;
st.global.u64 [%to+8], %d4;""")
    assert (found[:, 0] >= np.where(np.arange(LANES) % 4, SIZES, 0)).all()
    assert (found[::4, 0] == 0).all()
    assert (found[::4, 1] // 8 == 2).all()


CALLED = """.func (.param .b32 sum) work(.param .b32 count)
{
.reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;
ld.param.b32 %r0, [count]; mul.wide.u32 %d0, %r0, 4; alloca.u64 %d1, %d0; mov.u32 %r1, 0; mov.u32 %r2, 0;
mov.u64 %d2, %d1;
fill: st.local.u32 [%d2], %r1; add.u64 %d2, %d2, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, %r0; @%p bra fill;
take: sub.u64 %d2, %d2, 4; ld.local.u32 %r3, [%d2]; add.u32 %r2, %r2, %r3; setp.gt.u64 %p, %d2, %d1; @%p bra take;
st.param.b32 [sum], %r2; ret;
}
"""


def test_a_function_gives_back_what_it_allocated() -> None:
    body = """alloca.u64 %d1, 8; st.local.u64 [%d1], %n; mov.u32 %r1, 0; mov.u32 %r3, 0;
again: { .param .b32 a; .param .b32 b; st.param.b32 [a], %w; call (b), work, (a); ld.param.b32 %r2, [b]; }
add.u32 %r3, %r3, %r2; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 12; @%p bra again;
stacksave.u64 %d2; sub.u64 %d2, %d1, %d2; st.global.u64 [%to], %d2; cvt.u64.u32 %d2, %r3; st.global.u64 [%to+8], %d2;
ld.local.u64 %d2, [%d1]; st.global.u64 [%to+16], %d2;"""
    with tt.scope(stack_bytes=2048):
        found = run(body, CALLED)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] == 12 * SIZES * (SIZES - 1) // 2).all()
    assert (found[:, 2] == SIZES).all()


@pytest.mark.parametrize("size", ["1024", "1000000", "-8", "%d7"])
def test_no_access_reaches_what_there_is_no_room_for(size: str) -> None:
    body = f"mov.u64 %d7, 0x8000000000000001; alloca.u64 %d1, 24; alloca.u64 %d1, {size}; st.local.u32 [%d1], %t;"
    with tt.scope(stack_bytes=1024):
        for only in ("generated", "oracle"):
            with pytest.raises(MemoryFault, match="Invalid __local__ write of size 4"):
                run_both(kernel(body), "k", 1, LANES, np.zeros((LANES, 4), np.int64), only=only)
        run(body.replace(f"%d1, {size}", "%d1, 992"))


def test_what_is_refused() -> None:
    for align in (3, 0, 1 << 24):
        with pytest.raises(PtxSyntaxError, match=f"must be a power of two up to 8388608, not {align}"):
            run(f"alloca.u64 %d1, 8, {align};")
    endless = ".func f(.param .b64 a) { .param .b64 b; .reg .b64 %d; st.param.b64 [b], %d; call f, (b); ret; }\n"
    with pytest.raises(UnsupportedFeature, match=r"'alloca\.u64' is not supported in a kernel whose functions call"):
        run("alloca.u64 %d1, 8; { .param .b64 b; st.param.b64 [b], %d1; call f, (b); }", endless)
