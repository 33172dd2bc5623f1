"""Barriers of a block: named, counted, reducing, in part of a warp; each also where threads end early."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

import triptych as tt
from triptych.core.errors import BarrierMisuse, DeadlockError, KernelFault

SOURCE = r"""
__device__ __forceinline__ void sync(int name, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(name), "r"(threads) : "memory");
}
__device__ __forceinline__ void arrive(int name, int threads) {
    asm volatile("bar.arrive %0, %1;" :: "r"(name), "r"(threads) : "memory");
}
__device__ __forceinline__ void sync_lanes(int name, int threads) {
    asm volatile("barrier.sync %0, %1;" :: "r"(name), "r"(threads) : "memory");
}
extern "C" __global__ void pipeline(const int* x, int* y, int rounds) {  // full: 1, 2; empty: 3, 4
    __shared__ int tile[2][32];
    int lane = threadIdx.x & 31, half = blockDim.x / 2, threads = blockDim.x;
    if (threadIdx.x < half) {
        for (int r = 0; r < rounds; ++r) {
            if (r >= 2) sync(3 + (r & 1), threads);
            if (threadIdx.x < 32) tile[r & 1][lane] = x[r * 32 + lane];
            arrive(1 + (r & 1), threads);
        }
    } else {
        int total = 0;
        for (int r = 0; r < rounds; ++r) {
            sync(1 + (r & 1), threads);
            total = total * 3 + tile[r & 1][31 - lane];
            if (r < rounds - 2) arrive(3 + (r & 1), threads);
        }
        y[threadIdx.x - half] = total;
    }
}
extern "C" __global__ void groups(int* y) {  // each 64 threads have a barrier of their own
    __shared__ int values[256];
    int group = threadIdx.x / 64;
    for (int r = 0; r <= group; ++r) {
        values[threadIdx.x] = threadIdx.x * (r + 1);
        sync(1 + group, 64);
        y[threadIdx.x] += values[threadIdx.x ^ 63];
        sync(1 + group, 64);
    }
}
extern "C" __global__ void lanes(int* y) {  // lanes of one number wait for those of the other warps
    __shared__ int values[128];
    int i = threadIdx.x, name = 2 + (i & 3);
    values[i] = i * i;
    sync_lanes(name, blockDim.x / 4);
    y[i] = values[(i + 36) % blockDim.x];
    if (i & 1) { sync_lanes(7, blockDim.x / 2); y[i] += 1000; } else { sync_lanes(8, blockDim.x / 2); y[i] += 2000; }
}
extern "C" __global__ void reduce(const int* x, int* y, int live) {
    int i = threadIdx.x;
    if (i >= live) return;
    int many = __syncthreads_count(x[i] > 3), all = __syncthreads_and(x[i] < 9), any = __syncthreads_or(x[i] == 5);
    if (x[i] & 1) many += 100 * __syncthreads_count(x[i] > 6); else many += 1000 * __syncthreads_count(x[i] > 2);
    y[i] = many * 4 + all * 2 + any;
}
extern "C" __global__ void guarded(int* y, int* z) {
    int i = threadIdx.x;
    y[i] = i;
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, 64; @p barrier.sync 5, 64; }" :: "r"(i) : "memory");
    if (i < 64) z[i] = y[63 - i];
    asm volatile("{ .reg .pred p; and.b32 %0, %0, 1; setp.eq.u32 p, %0, 0; @p barrier.sync 6, 64; }" : "+r"(i));
    if (i == 0) z[threadIdx.x] += y[(threadIdx.x + 2) % blockDim.x];
}
"""


@pytest.fixture(scope="module")
def text() -> str:
    return tt.cuda.compile(SOURCE, arch="sm_80").ptx


@pytest.mark.parametrize(("threads", "rounds"), [(64, 9), (128, 4), (256, 2), (64, 1)])
def test_producers_and_consumers(text: str, threads: int, rounds: int) -> None:
    x = np.random.default_rng(rounds).integers(0, 9, 32 * rounds).astype(np.int32)
    outcome = run_both(text, "pipeline", 2, threads, x, np.zeros(threads // 2, np.int32), np.int32(rounds))
    total = np.zeros(32, np.int32)
    for tile in x.reshape(rounds, 32):
        total = total * 3 + tile[::-1]
    assert np.array_equal(outcome.arrays[1], np.tile(total, threads // 64))


@pytest.mark.parametrize("threads", [64, 192, 256])
def test_a_barrier_for_each_group_of_warps(text: str, threads: int) -> None:
    (y,) = run_both(text, "groups", 1, threads, np.zeros(threads, np.int32)).arrays
    i = np.arange(threads)
    rounds = i // 64 + 1
    assert np.array_equal(y, (i ^ 63) * (rounds * (rounds + 1) // 2))


def test_lanes_of_a_warp_at_barriers_of_their_own(text: str) -> None:
    threads = 128
    (y,) = run_both(text, "lanes", 3, threads, np.zeros(threads, np.int32)).arrays
    i = np.arange(threads)
    assert np.array_equal(y, ((i + 36) % threads) ** 2 + np.where(i & 1, 1000, 2000))


@pytest.mark.parametrize(("threads", "live"), [(128, 128), (128, 70), (100, 100), (96, 33), (32, 1)])
def test_reductions(text: str, threads: int, live: int) -> None:
    x = np.random.default_rng(live).integers(0, 10, threads).astype(np.int32)
    _, y = run_both(text, "reduce", 2, threads, x, np.zeros(threads, np.int32), np.int32(live)).arrays
    used = x[:live]
    many = (used > 3).sum()
    # Threads of both sides wait at one barrier: each brings its own predicate.
    last = np.where(used & 1, used > 6, used > 2).sum()
    expected = (many + last * np.where(used & 1, 100, 1000)) * 4 + (used < 9).all() * 2 + (used == 5).any()
    assert np.array_equal(y[:live], expected)
    assert not y[live:].any()


def test_a_barrier_for_those_that_a_guard_admits(text: str) -> None:
    y, z = run_both(text, "guarded", 1, 128, np.zeros(128, np.int32), np.zeros(128, np.int32)).arrays
    i = np.arange(128)
    assert np.array_equal(y, i)
    assert np.array_equal(z, np.where(i < 64, 63 - i, 0) + np.where(i % 2, 0, (i + 2) % 128))


BODIES = {
    "a barrier that nobody completes": ("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 96;", DeadlockError),
    "two barriers": ("setp.lt.u32 %p1, %r1, 32; @%p1 bra a; bar.sync 1; ret; a: bar.sync 2;", DeadlockError),
    "a barrier too many": ("bar.sync 16;", BarrierMisuse),
    "a barrier too many, in a register": ("add.u32 %r2, %r1, 10; barrier.sync %r2, 64;", BarrierMisuse),
    "threads that are no warps": ("bar.sync 1, 33;", BarrierMisuse),
    "no threads": ("mov.u32 %r2, 0; bar.arrive 1, %r2;", BarrierMisuse),
    "two numbers of threads": (
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra a; bar.sync 1, 64; ret; a: bar.sync 1, 96;",
        BarrierMisuse,
    ),
    "lanes of a warp at two instructions": (
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra a; bar.warp.sync -1; ret; a: vote.sync.ballot.b32 %r2, %p1, -1;",
        DeadlockError,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_both_refuse_what_cannot_end(name: str) -> None:
    body, kind = BODIES[name]
    text = f"{HEADER}.visible .entry k()\n{{ .reg .pred %p<2>; .reg .b32 %r<4>; mov.u32 %r1, %tid.x;\n{body}\nret; }}"
    for executor in ("generated", "oracle"):
        with pytest.raises(KernelFault) as error:
            run_both(text, "k", 2, 64, only=executor)
        assert type(error.value) is kind, executor
