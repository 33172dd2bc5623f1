"""Tiles and partitions of cooperative groups from CUDA C++, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt

SIZES = (64, 128, 256, 512)
TILES = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
template <int size> __global__ void tiles(const int *x, int *sum, int *most, int *place) {
    __shared__ cg::block_tile_memory<1024> memory;
    __shared__ int own[1024];
    extern __shared__ int more[];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<size>(block);
    int t = threadIdx.x;
    own[t] = x[blockIdx.x * blockDim.x + t];
    if (t < 8) more[t] = t;
    block.sync();
    sum[blockIdx.x * blockDim.x + t] = cg::reduce(tile, own[t], cg::plus<int>());
    most[blockIdx.x * blockDim.x + t] = cg::reduce(tile, own[t], cg::greater<int>()) + more[7] - 7;
    tile.sync();
    place[blockIdx.x * blockDim.x + t] = tile.meta_group_rank() * 10000 + tile.shfl(own[t], 3);
}
"""
PARTITIONS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void partitions(const int *label, const int *x, int *sum, int *least, int *rank) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (label[t] < 0) return;
    auto warp = cg::coalesced_threads();
    auto group = cg::labeled_partition(warp, label[t]);
    int turns = label[t] % 3;
    for (int turn = 0; turn <= turns; ++turn)
        sum[t] += cg::reduce(group, x[t] + turn, cg::plus<int>());
    if (x[t] & 1) {
        auto odd = cg::coalesced_threads();
        least[t] = cg::reduce(cg::labeled_partition(odd, label[t]), x[t], cg::less<int>());
    }
    rank[t] = group.thread_rank() * 100 + group.size();
}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90"])
def test_tiles_of_several_warps(target: str) -> None:
    """From sm_80 on their barriers lie in memory that the system reserves, elsewhere in the kernel's own."""
    module = tt.cuda.compile(TILES, arch=target, names=[f"tiles<{size}>" for size in SIZES])
    x = np.random.default_rng(0).integers(-1000, 1000, 2 * 1024, np.int32)
    for size in SIZES:
        total, most, place = (np.zeros(len(x), np.int32) for _ in range(3))
        launched = module[f"tiles<{size}>"][2, 1024, 32](x, total, most, place)
        tiles = x.reshape(-1, size)
        np.testing.assert_array_equal(total, np.repeat(tiles.sum(1), size))
        np.testing.assert_array_equal(most, np.repeat(tiles.max(1), size))
        ranks = np.arange(len(tiles)) % (1024 // size)
        np.testing.assert_array_equal(place, np.repeat(ranks * 10000 + tiles[:, 3], size))
        assert launched.findings == ()


def test_partitions_by_labels_in_parted_warps() -> None:
    module = tt.cuda.compile(PARTITIONS, arch="sm_80")
    source = np.random.default_rng(1)
    for labels in (1, 4, 32):
        label, x = source.integers(-1, labels, 256, np.int32), source.integers(-1000, 1000, 256, np.int32)
        total, least, rank = (np.zeros(256, np.int32) for _ in range(3))
        module["partitions"][2, 128](label, x, total, least, rank)
        for t in range(256):
            members = [u for u in range(t // 32 * 32, t // 32 * 32 + 32) if label[u] == label[t] >= 0]
            turns = range(int(label[t]) % 3 + 1) if members else ()
            assert total[t] == sum(int(x[u]) + turn for u in members for turn in turns)
            odd = [int(x[u]) for u in members if x[u] & 1]
            assert least[t] == (min(odd) if members and x[t] & 1 else 0)
            assert rank[t] == (members.index(t) * 100 + len(members) if members else 0)


RESERVED = """.version 8.1
.target sm_80
.address_size 64
.entry k(.param .u64 results)
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .shared .align 4 .b8 own[64];
ld.param.u64 %d0, [results];
mov.u32 %r0, %reserved_smem_offset_1; ld.shared.u32 %r1, [%r0+284]; ld.shared.u32 %r2, [%r0+288];
mov.u32 %r3, own; ld.shared.u32 %r4, [own]; mov.u32 %r5, %total_smem_size; {last}
st.global.v4.u32 [%d0], {{%r1, %r2, %r3, %r4}}; st.global.u32 [%d0+16], %r5; ret;
}}
"""


def test_reserved_memory_is_apart_from_the_kernels_own() -> None:
    """Cleared as far as the system uses it, else poisoned as all shared memory; the kernel has it beside its own."""
    out, poison = np.zeros(5, np.uint32), 0xA5A5_A5A5
    with tt.profile(chip="h100") as profile:
        tt.ptx.compile(RESERVED.format(last=""))["k"][1, 1](out)
    assert out.tolist() == [0, poison, 1024, poison, 64]
    assert profile.launches[0].record.shared_bytes == 64
    with pytest.raises(tt.MemoryFault, match="the block has 64 bytes of shared memory behind the 1024 that the system"):
        tt.ptx.compile(RESERVED.format(last="ld.shared.u32 %r4, [own+64];"))["k"][1, 1](out)
