"""Bulk copies, and stores and reductions that mbarriers are told of, on both executors and against numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from both import Array, Outcome, run_both

from triptych.core.errors import BarrierMisuse, MemoryFault
from triptych.gpu.isa import find_form

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
THREADS, TILE = 64, 512
"""Threads of a block, and bytes of its tile."""
WAIT = "L: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r3], 0; @!%p6 bra L;"
SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"


def kernel(body: str) -> str:
    """%r1 is the thread, %r2 the tile and %r3 the mbarrier behind it, %d1 the source, %d2 the target, %r0 a number.

    The tile holds 100 · rank + thread in each of its first words, 0 behind them. The mbarrier waits for one arrival;
    %p1 is true in thread 0.
    """
    return f"""{HEADER}.entry k(.param .u64 source, .param .u64 target, .param .u32 number)
{{
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .f32 %f<8>; .reg .f64 %e<4>; .reg .b64 %d<20>;
.shared .align 128 .b8 tile[{TILE}]; .shared .align 8 .b64 barrier;
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, barrier;
ld.param.u64 %d1, [source]; ld.param.u64 %d2, [target]; ld.param.u32 %r0, [number];
mov.u32 %r4, %cluster_ctarank; mad.lo.u32 %r5, %r4, 100, %r1; shl.b32 %r6, %r1, 2; add.u32 %r7, %r2, %r6;
st.shared.u32 [%r7], %r5; mov.u32 %r5, 0; st.shared.u32 [%r7+{4 * THREADS}], %r5;
setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster; {SYNC}
{body}
ret;
}}
"""


def launch(
    body: str, source: Array, target: Array, number: int = 0, *, cluster: int = 1, only: str = "", counted: bool = True
) -> Outcome:
    """A grid of one cluster; not `counted` where blocks wait for each other: how often they look nobody promises."""
    given = (source, target, np.uint32(number))
    return run_both(kernel(body), "k", cluster, THREADS, *given, cluster=cluster, only=only, counted=counted)


TELL = f"""{SYNC} mov.u32 %r8, %ctaid.x; mul.lo.u32 %r8, %r8, {TILE}; add.u32 %r8, %r8, %r6; cvt.u64.u32 %d3, %r8;
add.u64 %d3, %d3, %d2; ld.shared.u32 %r9, [%r7]; st.global.u32 [%d3], %r9;
ld.shared.u32 %r9, [%r7+{4 * THREADS}]; st.global.u32 [%d3+{4 * THREADS}], %r9;"""
"""The tile of each block to the target."""
START = np.concatenate([np.arange(THREADS), np.zeros(THREADS, np.int64)]).astype(np.uint32)
"""A tile of rank 0 before anything is copied, in words."""
WORDS = np.random.default_rng(0).integers(0, 1 << 32, 512, np.uint32)
EMPTY = np.zeros(0, np.uint32)


def words(cluster: int) -> Array:
    return np.zeros(cluster * TILE // 4, np.uint32)


# --- Copies ---------------------------------------------------------------------------------------------------------

LOADS = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+32], [%d1+16], %r0, [%r3]",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2+32], [%d1+16], %r0, [%r3]",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
    " [%r2+32], [%d1+16], %r0, [%r3], %d5",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    " [%r2+32], [%d1+16], %r0, [%r3], %h1",
)  # fmt: skip


@pytest.mark.parametrize("form", LOADS)
def test_from_global_to_shared_memory(form: str) -> None:
    body = f"""mov.u16 %h1, 1; createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r0; @%p1 {form}; {WAIT} {TELL}"""
    for size in (16, 0, 48, 400):
        found = launch(body, WORDS, words(1), size)
        expected = START.copy()
        expected[8 : 8 + size // 4] = WORDS[4 : 4 + size // 4]
        np.testing.assert_array_equal(found.arrays[1], expected)
        counted = {name: value for name, value in found.counters.items() if name.startswith(("global.l", "shared.as"))}
        sectors = len({place // 32 for place in range(16, 16 + size)})
        pairs = len({place // 64 for place in range(16, 16 + size)})
        given = {
            "global.load.requests": int(size > 0), "global.load.bytes": size, "global.load.sectors": sectors,
            "global.load.compulsory_bytes": 64 * pairs, "shared.async.store.requests": int(size > 0),
            "shared.async.store.bytes": size,
        }  # fmt: skip
        assert counted == {name: value for name, value in given.items() if value or name.endswith("compulsory_bytes")}


def test_each_lane_copies_for_itself() -> None:
    body = f"""mov.u32 %r10, 512; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r10;
setp.lt.u32 %p2, %r1, 32; shl.b32 %r11, %r1, 4; mov.u32 %r12, 496; sub.u32 %r12, %r12, %r11; cvt.u64.u32 %d4, %r12;
add.u64 %d4, %d4, %d1; add.u32 %r11, %r11, %r2;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%d4], 16, [%r3]; {WAIT} {TELL}"""
    found = launch(body, WORDS, words(1))
    np.testing.assert_array_equal(found.arrays[1].reshape(32, 4), WORDS[:128].reshape(32, 4)[::-1])
    assert found.counters["global.load.requests"] == found.counters["global.load.sectors"] == 32


def test_to_several_blocks_of_a_cluster() -> None:
    """The second block copies to those that the mask names, each of which waits at an mbarrier of its own."""
    body = f"""mov.u16 %h1, 11; shl.b32 %r10, 1, %r4; and.b32 %r10, %r10, 11; setp.eq.u32 %p2, %r10, 0; @%p2 bra TELL;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 64; setp.eq.and.u32 %p3, %r4, 1, %p1;
@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%d1], 64, [%r3], %h1;
{WAIT} TELL: {TELL}"""
    found = launch(body, WORDS, words(4), cluster=4, counted=False)
    expected = np.tile(START, (4, 1))
    expected[:, :THREADS] += np.arange(4, dtype=np.uint32)[:, None] * np.uint32(100)
    expected[[0, 1, 3], :16] = WORDS[:16]
    np.testing.assert_array_equal(found.arrays[1].reshape(4, -1), expected)
    assert (found.counters["global.load.requests"], found.counters["global.load.bytes"]) == (1, 64)
    assert (found.counters["shared.async.store.requests"], found.counters["shared.async.store.bytes"]) == (3, 192)


NEXT = "xor.b32 %r10, %r4, 1; mapa.shared::cluster.u32 %r11, %r2, %r10; mapa.shared::cluster.u32 %r12, %r3, %r10;"
"""%r11 and %r12: the tile and the mbarrier of the other of two blocks."""


def test_from_block_to_block() -> None:
    body = f"""{NEXT} @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r0;
@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11+256], [%r2+16], %r0, [%r12];
{WAIT} {TELL}"""
    found = launch(body, EMPTY, words(2), 128, cluster=2, counted=False)
    tiles = found.arrays[1].reshape(2, -1)
    np.testing.assert_array_equal(tiles[:, THREADS : THREADS + 32], [np.arange(104, 136), np.arange(4, 36)])
    assert (tiles[:, THREADS + 32 :] == 0).all()
    assert found.counters["shared.async.load.bytes"] == found.counters["shared.async.store.bytes"] == 256


@pytest.mark.parametrize("hint", ["", ".L2::cache_hint"])
def test_from_shared_to_global_memory(hint: str) -> None:
    policy = ", %d5" if hint else ""
    body = f"""createpolicy.fractional.L2::evict_last.b64 %d5;
@%p1 cp.async.bulk.global.shared::cta.bulk_group{hint} [%d2+48], [%r2+64], %r0{policy};
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
cp.async.bulk.prefetch.L2.global [%d2], 16;"""
    for size in (16, 160):
        found = launch(body, EMPTY, np.full(128, 7, np.uint32), size)
        expected = np.full(128, 7, np.uint32)
        expected[12 : 12 + size // 4] = np.arange(16, 16 + size // 4)
        np.testing.assert_array_equal(found.arrays[1], expected)
        assert found.counters["global.store.bytes"] == size
        assert found.counters["global.store.sectors"] == len({place // 32 for place in range(48, 48 + size)})


# --- Reductions -----------------------------------------------------------------------------------------------------

DTYPES: Mapping[str, Any] = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64,
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b, "min": np.minimum, "max": np.maximum, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "inc": lambda a, b: np.where(a >= b, 0, a + 1).astype(a.dtype),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1).astype(a.dtype),
}  # fmt: skip
_OF_BOTH = (
    "add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32", "dec.u32", "and.b32",
    "or.b32", "xor.b32",
)  # fmt: skip
IN_SHARED = [*_OF_BOTH]
IN_GLOBAL = [
    *_OF_BOTH, "add.f32", "add.f64", "add.noftz.f16", "add.noftz.bf16", "min.u64", "min.s64", "min.f16", "min.bf16",
    "max.u64", "max.s64", "max.f16", "max.bf16", "and.b64", "or.b64", "xor.b64",
]  # fmt: skip
BYTES = 96


def operands(reduction: str) -> tuple[Array, Array]:
    """What there is, and what is combined with it: small numbers, in some places equal ones, as the type has them."""
    dtype = np.dtype(DTYPES[reduction.rpartition(".")[2]])
    source = np.random.default_rng(len(reduction))
    low = 0 if dtype.kind == "u" else -9
    old, b = (source.integers(low, 9, BYTES // dtype.itemsize).astype(dtype) for _ in range(2))
    return old, b


def chosen(forms: Mapping[str, str] | list[str], write: Callable[[str], str]) -> str:
    """The form of number %r0: one kernel for all."""
    return "\n".join(
        f"setp.eq.u32 %p2, %r0, {place}; and.pred %p2, %p2, %p1; @%p2 {write(form)};"
        for place, form in enumerate(forms)
    )


FILL = f"""setp.lt.u32 %p3, %r1, {BYTES // 4}; cvt.u64.u32 %d4, %r6; add.u64 %d4, %d4, %d1;
@%p3 ld.global.u32 %r9, [%d4]; @%p3 st.shared.u32 [%r7], %r9;
@%p3 ld.global.u32 %r9, [%d4+{BYTES}]; @%p3 st.shared.u32 [%r7+256], %r9; {SYNC}"""
"""The source into the tile: the operands, and the old elements 256 bytes behind them."""


@pytest.mark.parametrize("reduction", IN_GLOBAL)
def test_reductions_in_global_memory(reduction: str) -> None:
    prefix = "cp.reduce.async.bulk.global.shared::cta.bulk_group"
    body = chosen(IN_GLOBAL, lambda form: f"{prefix}.{form} [%d2], [%r2], {BYTES}")
    old, b = operands(reduction)
    given = np.concatenate([b, b]).view(np.uint8)
    found = launch(f"{FILL} {body}", given, old.view(np.uint8).copy(), IN_GLOBAL.index(reduction))
    expected = COMBINE[reduction.partition(".")[0]](old, b)
    np.testing.assert_array_equal(found.arrays[1].view(old.dtype), expected)
    assert (found.counters["global.atomic.requests"], found.counters["global.atomic.bytes"]) == (1, BYTES)


@pytest.mark.parametrize("reduction", IN_SHARED)
def test_reductions_in_shared_memory(reduction: str) -> None:
    """In the other block of two."""
    prefix = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    body = chosen(IN_SHARED, lambda form: f"{prefix}.{form} [%r11+256], [%r2], {BYTES}, [%r12]")
    old, b = operands(reduction)
    given = np.concatenate([b, old]).view(np.uint8)
    text = f"{FILL} {NEXT} @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {BYTES}; {body} {WAIT} {TELL}"
    found = launch(text, given, words(2), IN_SHARED.index(reduction), cluster=2, counted=False)
    expected = COMBINE[reduction.partition(".")[0]](old, b)
    for tile in found.arrays[1].reshape(2, -1):
        np.testing.assert_array_equal(tile[64 : 64 + BYTES // 4].view(old.dtype), expected)
    assert found.counters["shared.async.atomic.bytes"] == 2 * BYTES


def test_sums_of_singles_in_global_memory_have_no_subnormals() -> None:
    """As those of `red` there (9.7.13.6)."""
    small = np.array([0x0000_0001, 0x8000_0001, 0x0080_0000, 0x0080_0000], np.uint32)
    other = np.array([0x0000_0001, 0x8000_0001, 0x8080_0001, 0x0080_0000], np.uint32)
    body = f"{FILL} @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d2], [%r2], 16;"
    given = np.resize(other, 2 * BYTES // 4)
    found = launch(body, given, small.copy())
    np.testing.assert_array_equal(found.arrays[1], [0, 0x8000_0000, 0x8000_0000, 0x0100_0000])


# --- Single elements ------------------------------------------------------------------------------------------------

SINGLE = {
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11], %r13, [%r12]": (4, [77, 1]),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r11], %d6, [%r12]": (8, [5, 6]),
    "st.async.mbarrier::complete_tx::bytes.v2.s32 [%d7], {%r13, %r14}, [%d8]": (8, [77, 88]),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r11], {%f1, %f1, %f2, %f2}, [%r12]": (
        16, [0x3F80_0000, 0x3F80_0000, 0x4000_0000, 0x4000_0000],
    ),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%r11], {%e1, %e1}, [%r12]": (
        16, [0, 0x3FF0_0000, 0, 0x3FF0_0000],
    ),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11+8], %r13, [%r12]": (
        4, [0, 1, 79],
    ),
    "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.max.s32 [%d7], %r13, [%d8]": (4, [77]),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r11], %d6, [%r12]": (8, [5, 7]),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r11], %r13, [%r12]": (4, [1]),
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 [%r11+4], %r13, [%r12]": (
        4, [0, 76],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", SINGLE)
def test_single_elements_for_another_block(form: str) -> None:
    """Thread 0 of the second block sends to the first, whose first words were 0, 1, 2 …"""
    size, expected = SINGLE[form]
    forms = chosen(list(SINGLE), lambda form: form)
    expected_bytes = chosen(
        list(SINGLE), lambda form: f"mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {SINGLE[form][0]}"
    )
    body = f"""{NEXT} mov.u32 %r13, 77; mov.u32 %r14, 88; mov.b64 %d6, 0x600000005; mov.f32 %f1, 0f3F800000;
mov.f32 %f2, 0f40000000; mov.f64 %e1, 0d3FF0000000000000; cvt.u64.u32 %d7, %r11; cvta.shared::cluster.u64 %d7, %d7;
cvt.u64.u32 %d8, %r12; cvta.shared::cluster.u64 %d8, %d8;
setp.eq.u32 %p5, %r4, 0; @%p5 bra RECEIVE; {forms} bra DONE;
RECEIVE: {expected_bytes} {WAIT} DONE: {TELL}"""
    found = launch(body, EMPTY, words(2), list(SINGLE).index(form), cluster=2, counted=False)
    tile = found.arrays[1][: len(expected)].tolist()
    assert tile == expected
    kind = "store" if form.startswith("st") else "atomic"
    assert found.counters[f"shared.async.{kind}.bytes"] == size


# --- Faults ---------------------------------------------------------------------------------------------------------

LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
FAULTS = {
    f"{LOAD} [%r2], [%d1], %r16, [%r3]": ("Invalid __global__ read of size 40 bytes", "size 40 is no multiple of 16"),
    f"{LOAD} [%r2+8], [%d1], 16, [%r3]": ("Invalid __async shared__ write of size 16", "0x8 is misaligned: bulk"),
    f"{LOAD} [%r2], [%d1+4], 16, [%r3]": ("Invalid __global__ read of size 16 bytes", "is misaligned: bulk copies"),
    f"{LOAD} [%r2], [%d1+48], 32, [%r3]": ("Invalid __global__ read of size 32 bytes", "reaches beyond the end"),
    f"{LOAD} [%r2+512], [%d1], 16, [%r3]": ("Invalid __async shared__ write of size 16", "is out of bounds"),
    f"{LOAD} [%r2], [%d1], 16, [%r3+4]": ("Invalid __async shared__ write of size 8", "is misaligned: a multiple of 8"),
    f"{LOAD} [%r2+33554432], [%d1], 16, [%r3]": ("Invalid __async shared__ write", "names the block of rank 1"),
    f"{STORE} [%d2], [%r2], 16": ("Invalid __global__ write of size 16 bytes", "which is read-only"),
    f"{STORE} [%d1+32], [%r2+512], 16": ("Invalid __async shared__ read of size 16", "is out of bounds"),
    f"{STORE} [%d1+32], [%r2+16777216], 16": ("Invalid __async shared__ read of size 16", "is out of bounds"),
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1+64], [%r2], 16": (
        "Invalid __global__ atomic of size 16 bytes", "is out of bounds",
    ),
    f"{LOAD}.multicast::cluster [%r2], [%d1], 16, [%r3], %h1": ("Invalid __async shared__ write", "rank 1"),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2+2], %r0, [%r3]": (
        "Invalid __async shared__ write of size 4 bytes", "is misaligned: a multiple of 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FAULTS)
def test_faults_are_named(form: str) -> None:
    body = f"mov.u32 %r16, 40; mov.u16 %h1, 3; {chosen(list(FAULTS), lambda form: form)}"
    locked = np.zeros(16, np.uint32)
    locked.flags.writeable = False
    for only in ("generated", "oracle"):
        with pytest.raises(MemoryFault) as caught:
            launch(body, WORDS[:16].copy(), locked, list(FAULTS).index(form), only=only)
        if only == "generated":
            assert all(part in str(caught.value) for part in FAULTS[form]), str(caught.value)
            assert (caught.value.thread, caught.value.block) == ((0, 0, 0), (0, 0, 0))


def test_a_copy_that_tells_no_mbarrier_is_a_fault() -> None:
    body = f"@%p1 {LOAD} [%r2], [%d1], 16, [%r2+32];"
    with pytest.raises(BarrierMisuse, match="0x20 of async shared memory was never initialised"):
        launch(body, WORDS, words(1), only="generated")
    with pytest.raises(BarrierMisuse):
        launch(body, WORDS, words(1), only="oracle")


@pytest.mark.parametrize(
    "opcode",
    [
        "cp.async.bulk.global.shared.bulk_group", "cp.async.bulk.shared::cluster.shared.mbarrier::complete_tx::bytes",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u64",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u16",
        "red.async.relaxed.gpu.mbarrier::complete_tx::bytes.add.u32",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.u32",
    ],
)  # fmt: skip
def test_opcodes_that_ptxas_refuses(opcode: str) -> None:
    mnemonic, *modifiers = opcode.split(".")
    assert find_form(mnemonic, tuple(modifiers)) is None
