"""Clusters of blocks from CUDA C++: cooperative groups, memory of other blocks, and what launches are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import triptych as tt
from triptych.core.settings import scope
from triptych.gpu import load

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(1, 1, 1) one(int *x) { x[blockIdx.x] = 1; }
extern "C" __global__ void plain(int *x) { x[blockIdx.x] = 1 + cg::this_cluster().block_rank(); }

// A histogram whose bins are spread over the blocks of a cluster.
extern "C" __global__ void histogram(int *bins, int nbins, int per_block, const int *values, int count) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = cg::this_grid().thread_rank(); i < count; i += cg::this_grid().size()) {
        int bin = min(max(values[i], 0), nbins - 1);
        atomicAdd(cluster.map_shared_rank(own, bin / per_block) + bin % per_block, 1);
    }
    cluster.sync();
    int *mine = bins + cluster.block_rank() * per_block;
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) atomicAdd(&mine[i], own[i]);
}

// The sum of a cluster's elements, gathered by its first block.
extern "C" __global__ void __cluster_dims__(8, 1, 1) sums(const float *x, float *y) {
    __shared__ float part[32];
    cg::cluster_group cluster = cg::this_cluster();
    float own = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(~0u, own, step);
    if (threadIdx.x == 0) *cluster.map_shared_rank(&part[cluster.block_rank()], 0) = own;
    cluster.sync();
    if (cluster.thread_rank() == 0) {
        float total = 0;
        for (int i = 0; i < cluster.num_blocks(); i++) total += part[i];
        y[blockIdx.x / 8] = total;
    }
}

// Each block passes its tile on, `rounds` times; work goes on between arriving and waiting.
extern "C" __global__ void __cluster_dims__(2, 2, 1) ring(int *y, int rounds) {
    __shared__ int tile[2][128];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    int seen = 0;
    tile[0][threadIdx.x] = block;
    cluster.sync();
    for (int round = 0; round < rounds; round++) {
        int own = tile[round % 2][threadIdx.x];
        *cluster.map_shared_rank(&tile[(round + 1) % 2][threadIdx.x], next) = own;
        auto arrived = cluster.barrier_arrive();
        seen += own;
        cluster.barrier_wait(static_cast<decltype(arrived)&&>(arrived));
    }
    y[block * 128 + threadIdx.x] = 1000 * seen + tile[rounds % 2][threadIdx.x];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) queries(int *y) {
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    int *there = cluster.map_shared_rank(&word, 1 - cluster.block_rank());
    int *out = y + 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    out[0] = cluster.thread_rank(); out[1] = cluster.num_threads(); out[2] = cluster.num_blocks();
    out[3] = cluster.query_shared_rank(there); out[4] = cluster.query_shared_rank(&word);
    out[5] = cluster.block_index().x; out[6] = cluster.dim_blocks().x; out[7] = cluster.dim_threads().x;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) late(int *y) {
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = threadIdx.x;
    cluster.sync();
    if (cluster.block_rank() == 1) return;
    for (int i = 0; i < 10; i++) __syncthreads();
    y[blockIdx.x] = *cluster.map_shared_rank(&word, 1);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) beyond(int *y, int at) {
    __shared__ int words[32];
    cg::cluster_group cluster = cg::this_cluster();
    words[threadIdx.x] = threadIdx.x;
    cluster.sync();
    y[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(words, 1 - cluster.block_rank())[at];
    cluster.sync();
}
"""
MODULE = tt.cuda.compile(SOURCE, arch="sm_90")


@pytest.fixture(autouse=True)
def on_h100() -> Iterator[tt.Profile]:
    with tt.profile(chip="h100", target="sm_90") as profile:
        yield profile


def test_the_entry_says_which_cluster_it_was_compiled_for() -> None:
    entries = load(MODULE.ptx).entries
    found = {name: (entry.required_cluster, entry.needs_cluster) for name, entry in entries.items()}
    assert [found[name] for name in ("sums", "one", "plain")] == [((8, 1, 1), True), ((1, 1, 1), True), (None, False)]


@pytest.mark.parametrize("blocks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_histogram_over_a_cluster(blocks: int, workers: int) -> None:
    nbins, count = 96, 5000
    values = np.random.default_rng(blocks).integers(-5, nbins + 5, count).astype(np.int32)
    bins = np.zeros(nbins, np.int32)
    per_block = nbins // blocks
    kernel = MODULE["histogram"].configure(grid=32, block=64, shared_bytes=4 * per_block, cluster=blocks)
    with scope(workers=workers):
        kernel(bins, nbins, per_block, values, count)
    np.testing.assert_array_equal(bins, np.bincount(np.clip(values, 0, nbins - 1), minlength=nbins))


def test_a_sum_over_a_cluster(on_h100: tt.Profile) -> None:
    x = np.random.default_rng(0).integers(-100, 100, 3 * 8 * 32).astype(np.float32)
    y = np.zeros(3, np.float32)
    MODULE["sums"][24, 32](x, y)
    np.testing.assert_array_equal(y, x.reshape(3, -1).sum(axis=1))
    counters = on_h100.launches[0].counters
    assert counters.value("shared.cluster.store.requests") == 24  # one of each block
    assert counters.value("shared.cluster.store.bytes") == 24 * 4
    assert counters.value("shared.load.requests") == 3 * 8  # its own memory, by its own addresses
    assert counters.value("barriers") == 2 * 24


@pytest.mark.parametrize("rounds", [0, 1, 3, 10])
def test_a_ring(rounds: int) -> None:
    y = np.zeros((4, 6, 128), np.int32)
    MODULE["ring"][(6, 4), 128](y, rounds)
    for block_y, block_x in np.ndindex(4, 6):
        rank = block_x % 2 + 2 * (block_y % 2)
        first = (block_y - block_y % 2) * 6 + block_x - block_x % 2
        sources = [(rank - step) % 4 for step in range(rounds + 1)]
        passed = [first + source % 2 + 6 * (source // 2) for source in sources]
        assert (y[block_y, block_x] == 1000 * sum(passed[:-1]) + passed[-1]).all()


def test_queries() -> None:
    y = np.zeros((4, 16, 8), np.int32)
    MODULE["queries"][4, 16](y)
    for block, thread in np.ndindex(4, 16):
        rank = block % 2
        assert y[block, thread].tolist() == [16 * rank + thread, 32, 2, 1 - rank, rank, rank, 2, 32]


def test_clusters_of_one_block() -> None:
    x = np.zeros(4, np.int32)
    MODULE["one"][3, 1](x)
    MODULE["plain"][(1,), 1](x[3:])
    assert x.tolist() == [1, 1, 1, 1]
    MODULE["plain"].configure(grid=4, block=1, cluster=4)(x)
    assert x.tolist() == [1, 2, 3, 4]


# --- Faults -------------------------------------------------------------------------------------------------------


def test_memory_of_a_block_that_has_ended() -> None:
    with pytest.raises(tt.MemoryFault) as caught:
        MODULE["late"][2, 64](np.zeros(2, np.int32))
    fault = caught.value
    assert "is of the block of rank 1, which has exited" in fault.message
    assert (fault.space, fault.access, fault.block) == ("shared::cluster", "load", (0, 0, 0))
    assert fault.where is not None
    assert fault.where.text == "y[blockIdx.x] = *cluster.map_shared_rank(&word, 1);"


def test_bounds_of_another_blocks_memory() -> None:
    y = np.zeros(64, np.int32)
    MODULE["beyond"][2, 32](y, 31)
    assert (y == 31).all()
    with pytest.raises(tt.MemoryFault, match=r"the block of rank [01] has 128 bytes of shared memory; .* is at 128"):
        MODULE["beyond"][2, 32](y, 32)


def test_a_cluster_that_waits_for_ever() -> None:
    source = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void __cluster_dims__(2, 1, 1) never(int *y) {
        cg::cluster_group cluster = cg::this_cluster();
        if (cluster.block_rank() == 0) { cluster.sync(); return; }
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
        cluster.sync();
    }"""
    with pytest.raises(tt.DeadlockError) as caught:
        tt.cuda.compile(source, arch="sm_90")["never"][4, 64](np.zeros(4, np.int32))
    first, *places = caught.value.message.splitlines()
    assert first == "kernel never: threads of the cluster of block (0,0,0) wait for each other and none can go on:"
    arrived = r"threads of 1 block wait at 'barrier\.cluster\.wait' \(96 of the cluster's 128 threads have arrived\), "
    assert re.match(f"  64 {arrived}", places[0])
    assert any(re.match(f"  32 {arrived}", place) for place in places[1:])
    alone = r"  32 threads of 1 block wait at 'bar\.sync' \(barrier 1: 32 of 64 threads"
    assert any(re.match(alone, place) for place in places[1:])


# --- Launches that are refused --------------------------------------------------------------------------------------


def test_launches_that_are_refused() -> None:
    x, floats = np.zeros(64, np.int32), np.zeros(64, np.float32)
    given = {"sums": (floats, floats), "plain": (x,)}
    for kernel, grid, cluster, message in (
        ("sums", 12, 1, r"grid \(12, 1, 1\) is no multiple of the cluster \(8, 1, 1\)"),
        ("sums", 8, 4, r"cluster \(4, 1, 1\), but the kernel was compiled for \(8, 1, 1\)"),
        ("plain", 3, 2, r"grid \(3, 1, 1\) is no multiple of the cluster \(2, 1, 1\)"),
        ("plain", 32, 32, r"cluster \(32, 1, 1\) has 32 blocks; h100 has at most 16"),
    ):
        with pytest.raises(tt.LaunchError, match=message):
            MODULE[kernel].configure(grid=grid, block=1, cluster=cluster)(*given[kernel])
    assert not x.any()


def test_a_target_and_a_chip_without_clusters() -> None:
    source = 'extern "C" __global__ void k(int *x) { x[blockIdx.x] = 1; }'
    x = np.zeros(4, np.int32)
    with pytest.raises(tt.LaunchError, match="was compiled for sm_80, which has no clusters") as caught:
        tt.cuda.compile(source, arch="sm_80")["k"].configure(grid=4, block=1, cluster=2)(x)
    assert caught.value.hint == "compile it for sm_90 or later"
    with tt.profile(chip="a100-80", target="sm_80"), pytest.raises(tt.LaunchError, match="a100-80 has no clusters"):
        MODULE["ring"][(2, 2), 32](x, 1)
    assert not x.any()
