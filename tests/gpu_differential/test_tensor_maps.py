"""Tensor maps that kernels make and change, and copies to several blocks, in PTX by hand on both executors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from both import Array, Outcome, run_both

from triptych.core.errors import MemoryFault, TensorMapMisuse, UnsupportedInstruction
from triptych.core.handles import AddressSpace
from triptych.execution.tensor_maps import encode_tensor_map
from triptych.gpu.tensor_map import FIELDS, Descriptor

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
TENSOR = np.arange(24 * 64, dtype=np.uint16).reshape(24, 64)
ADDRESS = AddressSpace().place("array0", TENSOR.nbytes, writable=True).address
"""Of the first array that a launch is given."""
TILE = 8 * 32 * 2
WAIT = "L: mbarrier.try_wait.parity.shared::cta.b64 %p6, [barrier], 0; @!%p6 bra L;"
SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"


def kernel(body: str) -> str:
    """%r1 is the thread, %r2 the tile of 4 KiB, %d1 the map that the launch passes, %d2 the map of the third parameter.

    The mbarrier waits for one arrival; %p1 is true in thread 0. At the end the tile of each block is shown.
    """
    return f"""{HEADER}.entry k(.param .u64 tensor, .param .align 64 .b8 map[128], .param .u64 made, .param .u64 shown)
{{
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<20>;
.shared .align 1024 .b8 tile[4096]; .shared .align 128 .b8 own[128]; .shared .align 8 .b64 barrier;
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [made];
ld.param.u64 %d3, [tensor]; mov.u32 %r3, 0; shl.b32 %r4, %r1, 2; mov.u32 %r5, own; add.u32 %r5, %r5, %r4;
setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r5], %r3; add.u32 %r6, %r2, %r4;
F: st.shared.u32 [%r6], %r3; add.u32 %r6, %r6, 128; sub.u32 %r7, %r6, %r2; setp.lt.u32 %p3, %r7, 4096; @%p3 bra F;
setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [barrier], 1; fence.proxy.async; {SYNC}
{body}
{SYNC} ld.param.u64 %d4, [shown]; mov.u32 %r8, %ctaid.x; shl.b32 %r8, %r8, 12; add.u32 %r8, %r8, %r4;
cvt.u64.u32 %d5, %r8; add.u64 %d4, %d4, %d5; add.u32 %r6, %r2, %r4;
S: ld.shared.u32 %r9, [%r6]; st.global.u32 [%d4], %r9; add.u32 %r6, %r6, 128; add.u64 %d4, %d4, 128;
sub.u32 %r7, %r6, %r2; setp.lt.u32 %p3, %r7, 4096; @%p3 bra S;
ret;
}}
"""


def described(**changes: object) -> Descriptor:
    found = encode_tensor_map(ADDRESS, "u16", TENSOR.shape, TENSOR.strides, (8, 32))
    return replace(found, **changes)  # type: ignore[arg-type]


def launch(body: str, descriptor: Descriptor, *, cluster: int = 1, only: str = "") -> Outcome:
    """How often a block looks at its barrier until another one's copy depends on their turns: it is not compared."""
    given = (TENSOR, descriptor.pack(), np.zeros(128, np.uint8), np.zeros(cluster * 2048, np.uint16))
    return run_both(kernel(body), "k", cluster, 32, *given, cluster=cluster, only=only, counted=cluster == 1)


def tiles(found: Outcome) -> Array:
    return found.arrays[2].reshape(-1, 8, 8, 32)


LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [barrier], {};"

# --- Several threads, several blocks --------------------------------------------------------------------------------


def test_several_threads_copy_boxes_of_their_own() -> None:
    found = launch(
        f"{EXPECT.format(4 * TILE)} setp.lt.u32 %p4, %r1, 4; shl.b32 %r10, %r1, 3; mad.lo.u32 %r11, %r1, {TILE}, %r2;"
        f" @%p4 {LOAD} [%r11], [%d1, {{%r10, %r1}}], [barrier]; {WAIT}",
        described(),
    )
    for thread in range(4):
        np.testing.assert_array_equal(
            tiles(found)[0, thread], TENSOR[thread : thread + 8, 8 * thread : 8 * thread + 32]
        )
    assert found.counters["tma.load.boxes"] == 4
    assert found.counters["shared.async.store.requests"] == 4


def test_a_box_to_several_blocks() -> None:
    """Block 1 copies to blocks 0, 1 and 3, each of which waits for its own barrier."""
    found = launch(
        f"mov.u32 %r10, %cluster_ctarank; setp.ne.u32 %p4, %r10, 2; setp.eq.and.u32 %p5, %r10, 1, %p1;"
        f" @%p4 {EXPECT.format(TILE)[5:]}".replace("@%p4 mbarrier", "and.pred %p7, %p4, %p1; @%p7 mbarrier")
        + f" mov.u16 %h1, 11; @%p5 {LOAD}.multicast::cluster [%r2+1024], [%d1, {{8, 3}}], [barrier], %h1;"
        f" @!%p4 bra N; {WAIT} N:",
        described(),
        cluster=4,
    )
    box = TENSOR[3:11, 8:40]
    for rank in range(4):
        np.testing.assert_array_equal(tiles(found)[rank, 2], np.zeros_like(box) if rank == 2 else box)
    assert found.counters["global.load.bytes"] == TILE
    assert found.counters["tma.load.bytes"] == 3 * TILE


def test_a_box_to_a_block_that_there_is_not() -> None:
    body = f"mov.u16 %h1, 4; @%p1 {LOAD}.multicast::cluster [%r2], [%d1, {{8, 3}}], [barrier], %h1;"
    for only in ("generated", "oracle"):
        with pytest.raises(MemoryFault, match="of rank 2"):
            launch(body, described(), cluster=2, only=only)


def test_a_box_to_another_block() -> None:
    found = launch(
        f"mov.u32 %r10, %cluster_ctarank; setp.eq.and.u32 %p4, %r10, 1, %p1; setp.eq.and.u32 %p5, %r10, 0, %p1;"
        f" @%p5 mbarrier.arrive.expect_tx.shared.b64 _, [barrier], {TILE}; mov.u32 %r13, barrier; mov.u32 %r14, 0;"
        f" mapa.shared::cluster.u32 %r11, %r2, %r14; mapa.shared::cluster.u32 %r12, %r13, %r14;"
        f" @%p4 {LOAD} [%r11], [%d1, {{16, 8}}], [%r12]; setp.ne.u32 %p7, %r10, 0; @%p7 bra N; {WAIT} N:",
        described(),
        cluster=2,
    )
    np.testing.assert_array_equal(tiles(found)[0, 0], TENSOR[8:16, 16:48])
    assert not tiles(found)[1].any()


# --- Maps made on the device ----------------------------------------------------------------------------------------


def replacements(descriptor: Descriptor, where: str) -> str:
    """A map of zeros becomes one of tiles, field by field."""
    fields = [("global_address", "b64", "", "%d3"), ("rank", "b32", "", str(len(descriptor.shape) - 1))]
    for axis, extent in enumerate(descriptor.shape):
        fields += [
            ("global_dim", "b32", f" {axis},", str(extent)), ("box_dim", "b32", f" {axis},", str(descriptor.box[axis])),
            ("element_stride", "b32", f" {axis},", str(descriptor.element_strides[axis])),
        ]  # fmt: skip
    fields += [("global_stride", "b64", f" {axis},", str(step)) for axis, step in enumerate(descriptor.strides)]
    fields += [
        ("elemtype", "b32", "", "1"), ("interleave_layout", "b32", "", "0"), ("fill_mode", "b32", "", "0"),
        ("swizzle_mode", "b32", "", str(descriptor.swizzle)),
    ]  # fmt: skip
    space, _, place = where.partition(" ")
    return "\n".join(
        f"@%p1 tensormap.replace.tile.{name}{space}.b1024.{kind} {place},{axis} {value};"
        for name, kind, axis, value in fields
    )


PUBLISH = (
    "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
    " [%d2], [own], 128; fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;"
)


@pytest.mark.parametrize("where", [".shared::cta [own]", " [%d6]", ".shared::cta [%r15+0]"])
def test_a_map_made_of_zeros(where: str) -> None:
    wanted = described(box=(32, 6), element_strides=(1, 2), swizzle=2)
    found = launch(
        f"cvt.u64.u32 %d6, %r5; cvta.shared.u64 %d6, %d6; mov.u32 %r15, own; {replacements(wanted, where)} {PUBLISH}"
        f" {EXPECT.format(3 * 64)} @%p1 {LOAD} [%r2], [%d2, {{32, 5}}], [barrier]; {WAIT}",
        described(),
    )
    made, mark = found.arrays[1].tobytes(), FIELDS["mark"]
    assert made[: mark.bytes] == bytes(mark.bytes)
    assert made[mark.bytes :] == wanted.pack()[mark.bytes :]
    expected = TENSOR[5:11:2, 32:].copy()
    expected[2] = expected[2].reshape(4, 8)[[1, 0, 3, 2]].reshape(-1)  # the swizzle's third row
    np.testing.assert_array_equal(tiles(found)[0, 0].reshape(-1, 32)[:3], expected)


def test_a_map_changed_on_the_device() -> None:
    """A copy of the launch's map, moved to begin at the tensor's third row, in global memory itself."""
    found = launch(
        "shl.b32 %r10, %r1, 2; cvt.u64.u32 %d6, %r10; add.u64 %d7, %d1, %d6; ld.u32 %r11, [%d7]; add.u64 %d8, %d2, %d6;"
        " st.global.u32 [%d8], %r11; bar.warp.sync -1; add.u64 %d9, %d3, 256;"
        " @%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%d2], %d9;"
        " @%p1 tensormap.replace.tile.global_dim.global.b1024.b32 [%d2], 1, 4;"
        f" fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;"
        f" {EXPECT.format(TILE)} @%p1 {LOAD} [%r2], [%d2, {{0, 0}}], [barrier]; {WAIT}",
        described(),
    )
    expected = np.zeros((8, 32), np.uint16)
    expected[:4] = TENSOR[2:6, :32]
    np.testing.assert_array_equal(tiles(found)[0, 0], expected)


def test_a_map_of_which_a_field_was_left_out() -> None:
    wanted = described()
    text = "\n".join(line for line in replacements(wanted, ".shared::cta [own]").splitlines() if "box_dim" not in line)
    body = f"{text} {PUBLISH} @%p1 {LOAD} [%r2], [%d2, {{0, 0}}], [barrier];"
    with pytest.raises(TensorMapMisuse, match=r"has box_dim\[0\] = 0; expected 1 to 256"):
        launch(body, wanted, only="generated")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("tensormap.replace.tile.box_dim.global.b1024.b32 [%d2], 5, %r1", r"there is no box_dim\[5\]"),
        ("tensormap.replace.tile.global_stride.global.b1024.b64 [%d2], 4, %d3", r"there is no global_stride\[4\]"),
        ("tensormap.replace.tile.box_dim.global.b1024.b32 [%d2], %r1, %r1", "the operand 'ordinal' must be a literal"),
        (f"{LOAD} [%r2], [%d1, {{0}}], [barrier]", "takes the operands"),
        (f"{LOAD.replace('global', 'global.tile::gather4')} [%r2], [%d1, {{0, 0}}], [barrier]", "is not supported"),
    ],
)
def test_what_is_refused(text: str, match: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=match):
        launch(f"{text};", described(), only="generated")


def test_prefetches_change_nothing() -> None:
    found = launch(
        "prefetch.tensormap [%d1]; prefetch.param.tensormap [map]; cp.async.bulk.prefetch.tensor.2d.L2.global.tile"
        " [%d1, {8, 3}]; mov.u64 %d6, 0; cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%d1, {8, 3}], %d6;",
        described(),
    )
    assert not any(name.startswith("tma") for name in found.counters)
    assert not tiles(found).any()
