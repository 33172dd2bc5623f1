"""Kernels that wait in loops, on both executors: their results do not depend on who runs when."""

from __future__ import annotations

import numpy as np
import pytest
from both import run_both
from waiting_kernels import LOCKS, after_locks

import triptych as tt

SOURCE = (
    LOCKS
    + r"""
#include <cooperative_groups.h>
extern "C" __global__ void chain(volatile int* turn, int* y) {  // threads in descending order
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  while (*turn != n - 1 - i);
  y[i] = *turn; __threadfence();
  *turn = n - i;
}
extern "C" __global__ void double_add(double* sum, const double* x) {  // no waiting: some lane always gets through
  unsigned long long *place = (unsigned long long*)sum, old = *place, seen;
  do {
    seen = old;
    old = atomicCAS(place, seen, __double_as_longlong(x[threadIdx.x] + __longlong_as_double(seen)));
  } while (seen != old);
}
extern "C" __global__ void grid(int* y, int* z) {
  auto all = cooperative_groups::this_grid();
  int n = all.size(), i = all.thread_rank();
  z[(i + 1) % n] = y[i] + 1;
  all.sync();
  y[i] = z[i] * 2;
}
"""
)


@pytest.fixture(scope="module")
def text() -> str:
    return tt.cuda.compile(SOURCE, arch="sm_80").ptx


@pytest.mark.parametrize("kernel", ["lock", "lock_with_flag"])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 5), (2, 40)])
def test_locks(text: str, kernel: str, blocks: int, threads: int) -> None:
    zero = np.zeros(1, np.int32)
    lock, y = run_both(text, kernel, blocks, threads, zero, zero, counted=False).arrays
    assert (lock[0], y[0]) == after_locks(blocks * threads)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 9), (2, 35)])
def test_threads_one_after_the_other(text: str, blocks: int, threads: int) -> None:
    y = np.zeros(blocks * threads, np.int32)
    _, found = run_both(text, "chain", blocks, threads, np.zeros(1, np.int32), y, counted=False).arrays
    assert np.array_equal(found, np.arange(len(y))[::-1])


def test_lanes_that_compete_for_one_place(text: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 32).astype(np.float64)
    outcome = run_both(text, "double_add", 1, 32, np.zeros(1), x)  # counters included: nobody waits for long
    assert outcome.arrays[0][0] == x.sum()


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_barrier_of_the_grid(text: str, blocks: int) -> None:
    y = np.random.default_rng(blocks).integers(0, 99, 33 * blocks).astype(np.int32)
    found, _ = run_both(text, "grid", blocks, 33, y, np.zeros_like(y), counted=False, cooperative=True).arrays
    assert np.array_equal(found, 2 * (np.roll(y, 1) + 1))
