"""Modifiers of loads and stores, hints and fences: they are taken, and change no value."""

from __future__ import annotations

import numpy as np
import pytest
from both import run_both

from triptych.core.errors import PtxSyntaxError, UnsupportedInstruction

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
LOADS = [
    "ld.global.b32", "ld.weak.global.ca.b32", "ld.relaxed.gpu.global.b32", "ld.acquire.sys.global.L1::evict_last.b32",
    "ld.volatile.global.b32", "ld.mmio.relaxed.sys.global.b32", "ld.global.nc.b32", "ld.global.cg.nc.b32",
    "ld.global.nc.L1::no_allocate.L2::256B.b32", "ld.acquire.gpu.b32", "ld.relaxed.cluster.b32", "ldu.global.b32",
    "ldu.b32", "ld.global.L1::evict_first.L2::64B.b32", "ld.global.L2::128B.b32", "ld.cv.b32",
    "ld.global.relaxed.cta.b32", "ld.mmio.relaxed.sys.b32",
]  # fmt: skip
STORES = [
    "st.global.b32", "st.weak.global.cs.b32", "st.relaxed.cta.global.b32", "st.release.gpu.global.b32",
    "st.volatile.b32", "st.mmio.relaxed.sys.global.b32", "st.global.wt.b32", "st.release.sys.L1::evict_unchanged.b32",
    "st.global.L1::evict_last.b32", "st.release.cluster.b32",
]  # fmt: skip
HINTED = [
    ("ld.global.L1::evict_last.L2::cache_hint{}.b32", "st.global.L1::evict_last.L2::cache_hint{}.b32"),
    ("ld.relaxed.gpu.global.L2::cache_hint.L2::128B{}.b32", "st.release.gpu.L2::cache_hint{}.b32"),
    ("ld.global.nc.L2::cache_hint{}.b32", "st.L2::cache_hint{}.b32"),
]
HINTS = [
    "fence.sc.cta;", "fence.acq_rel.gpu;", "fence.acquire.sys;", "fence.release.cluster;", "fence.gpu;", "membar.gl;",
    "membar.cta;", "membar.sys;", "fence.proxy.alias;", "fence.proxy.async;", "fence.proxy.async.global;",
    "fence.proxy.async.shared::cta;", "membar.proxy.alias;", "prefetch.global.L1 [%d0];", "prefetch.L2 [%d0+4];",
    "prefetch.global.L2::evict_last [%d0];", "prefetch.local.L1 [%d0];", "prefetchu.L1 [%d0];",
    "applypriority.global.L2::evict_normal [%d0], 128;", "discard.global.L2 [%d1], 128;", "nanosleep.u32 100;",
    "nanosleep.u32 %r0;", "pmevent 7;", "pmevent.mask 0xff;", "griddepcontrol.launch_dependents;",
    "griddepcontrol.wait;", "setmaxnreg.inc.sync.aligned.u32 232;", "setmaxnreg.dec.sync.aligned.u32 40;",
]  # fmt: skip


def kernel(body: str) -> str:
    return f"""{HEADER}.entry copy(.param .u64 from, .param .u64 to)
{{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<2>;
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to]; mov.u32 %r0, %tid.x;
mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 16, %d1;
{body}
ret;
}}
"""


def copied(body: str, elements: int) -> None:
    """The body copies so many words of each thread's four."""
    threads = 128 if "setmaxnreg" in body else 40  # which is for whole groups of four warps
    source = np.random.default_rng(len(body)).integers(0, 1 << 32, (threads, 4), np.uint32)
    _, target = run_both(kernel(body), "copy", 1, threads, source, np.zeros_like(source)).arrays
    expected = np.where(np.arange(4) < elements, source, 0)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("load", LOADS)
def test_loads(load: str) -> None:
    copied(f"{load} %r1, [%d0]; st.global.b32 [%d1], %r1;", 1)


@pytest.mark.parametrize("store", STORES)
def test_stores(store: str) -> None:
    copied(f"ld.global.b32 %r1, [%d0]; {store} [%d1], %r1;", 1)


@pytest.mark.parametrize(("load", "store"), HINTED)
@pytest.mark.parametrize("elements", [1, 2, 4])
def test_a_policy_follows_the_value(load: str, store: str, elements: int) -> None:
    names = ", ".join(f"%r{i + 1}" for i in range(elements))
    vector, names = (f".v{elements}", f"{{{names}}}") if elements > 1 else ("", names)
    policy = "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d5, 0.5;"
    copied(f"{policy} {load.format(vector)} {names}, [%d0], %d5; {store.format(vector)} [%d1], {names}, %d5;", elements)


@pytest.mark.parametrize("hint", HINTS)
def test_hints_change_nothing(hint: str) -> None:
    copied(f"{hint} ld.global.b32 %r1, [%d0]; {hint} st.global.b32 [%d1], %r1; {hint}", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ld.global.L2::cache_hint.b32 %r1, [%d0];", "takes the operands"),
        ("ld.global.v16.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d0];", "'ld.global.v16.b32'"),
        ("multimem.ld_reduce.global.add.u32 %r1, [%d0];", "'multimem.ld_reduce.global.add.u32'"),
        ("ld.relaxed.global.b32 %r1, [%d0];", "'ld.relaxed.global.b32'"),
        ("st.acquire.gpu.global.b32 [%d0], %r1;", "'st.acquire.gpu.global.b32'"),
        ("fma.rn.oob.f16 %r1, %r1, %r1, %r1;", "'fma.rn.oob.f16'"),
        ("cvt.rs.f16x2.f32 %r1, %f0, %f1, %r2;", "'cvt.rs.f16x2.f32'"),
        ("max.f32 %f0, %f0, %f1, %f1, %f0;", "takes the operands"),
        ("redux.sync.add.f32 %f0, %f1, -1;", "'redux.sync.add.f32'"),
        ("min.f32x2 %d0, %d0, %d1;", "'min.f32x2'"),
        ("atom.global.cas.L2::cache_hint.b32 %r0, [%d0], %r1, %r2, %d2;", "'atom.global.cas.L2::cache_hint.b32'"),
    ],
)
def test_what_is_refused_is_named(text: str, message: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=message):
        run_both(kernel(text), "copy", 1, 32, np.zeros(64), np.zeros(64))


def test_elements_are_counted() -> None:
    for text in (
        "red.global.add.v2.f32 [%d0], %f0;",
        "atom.global.add.v4.f32 {%f0, %f1}, [%d0], {%f0, %f1, %f0, %f1};",
        "st.global.v2.L2::cache_hint.b32 [%d0], %r1, %d5;",
    ):
        with pytest.raises(PtxSyntaxError, match="elements expected"):
            run_both(kernel(text), "copy", 1, 32, np.zeros(64), np.zeros(64))


@pytest.mark.parametrize("space", ["shared", "local", "const", "param", "global", ""])
def test_32_bytes_at_once_are_of_global_memory(space: str) -> None:
    load = f"ld{'.' * bool(space)}{space}.v4.b64 {{%l0, %l1, %l2, %l3}}, [%l0];"
    text = kernel(f".reg .b64 %l<4>; ld.param.u64 %l0, [from]; {load} st.global.v2.b64 [%d1], {{%l2, %l3}};")
    source = np.arange(4, dtype=np.uint64)
    if space in ("global", ""):
        _, target = run_both(text, "copy", 1, 8, source, np.zeros((8, 2), np.uint64)).arrays
        assert (target == [2, 3]).all()
    else:
        with pytest.raises(PtxSyntaxError, match="more than 16 bytes are of global memory alone"):
            run_both(text, "copy", 1, 8, source, np.zeros((8, 2), np.uint64))
