"""Loops that wait for other lanes, warps and blocks end, whoever runs first; those that wait in vain are told of."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting_kernels import LOCKS, after_locks

import triptych as tt

SOURCE = r"""
extern "C" __global__ void exchange_lock(int* lock, int* y) {
  while (atomicExch(lock, 1) != 0) __nanosleep(100);
  y[0] = y[0] * 2 % 1000003 + 1; __threadfence();
  atomicExch(lock, 0);
}
__device__ __noinline__ bool try_lock(int* lock) { return atomicCAS(lock, 0, 1) == 0; }
__device__ __noinline__ void unlock(int* lock) { __threadfence(); atomicExch(lock, 0); }
__device__ __noinline__ void wait_until(volatile int* flag, int value) { while (*flag < value); }
extern "C" __global__ void lock_in_functions(int* lock, int* y) {
  while (!try_lock(lock));
  y[0] = y[0] * 2 % 1000003 + 1;
  unlock(lock);
}
extern "C" __global__ void wait_in_a_function(int* flag, int* y) {
  if (blockIdx.x == 0) { wait_until(flag, gridDim.x - 1); y[threadIdx.x] = *flag; }
  else if (threadIdx.x == 0) atomicAdd(flag, 1);
}
extern "C" __global__ void tickets(int* next, volatile int* serving, int* order) {
  int mine = atomicAdd(next, 1);
  while (*serving != mine);
  order[mine] = blockIdx.x * blockDim.x + threadIdx.x; __threadfence();
  *serving = mine + 1;
}
extern "C" __global__ void warps_in_turn(int* y, int* count) {  // the last warp first
  __shared__ volatile int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  while (turn != warps - 1 - warp);
  if (threadIdx.x % 32 == 0) { y[blockIdx.x * warps + warp] = count[blockIdx.x]++; __threadfence_block(); turn++; }
}
extern "C" __global__ void a_lane_waits_for_a_lane(volatile int* flag, int* y, int lower) {
  int lane = threadIdx.x;
  if ((lane < 7) == lower) { while (flag[0] < (lower ? 25 : 7)); y[lane] = flag[0]; }
  else { atomicAdd((int*)flag, 1); y[lane] = -1; }
}
extern "C" __global__ void last_block_produces(volatile int* flag, volatile int* data, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == gridDim.x - 1) { data[0] = 42; __threadfence(); flag[0] = 1; }
  else if (blockIdx.x % 3 == 0) { while (flag[0] == 0); __threadfence(); out[blockIdx.x] = data[0]; }
}
extern "C" __global__ void look_back(const int* x, int* y, volatile int* ready, volatile int* total, int forward) {
  extern __shared__ int sums[];
  __shared__ int before;
  int block = forward ? blockIdx.x : gridDim.x - 1 - blockIdx.x, i = block * blockDim.x + threadIdx.x;
  sums[threadIdx.x] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0, prior = 0;
    for (int k = 0; k < blockDim.x; k++) sum += sums[k];
    if (block > 0) { while (ready[block - 1] == 0); __threadfence(); prior = total[block - 1]; }
    total[block] = prior + sum; __threadfence(); ready[block] = 1; before = prior;
  }
  __syncthreads();
  int own = before;
  for (int k = 0; k <= threadIdx.x; k++) own += sums[k];
  y[i] = own;
}
extern "C" __global__ void grid_barrier(unsigned* count, int* y, int* z, int rounds) {
  int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 1; r <= 2 * rounds; r++) {
    if (r & 1) z[(i + 1) % n] = y[i] + 1; else y[i] = z[i];
    __threadfence(); __syncthreads();
    if (threadIdx.x == 0) { atomicAdd(count, 1); while (atomicAdd(count, 0) < r * gridDim.x); }
    __syncthreads();
  }
}
extern "C" __global__ void plain_load(int* flag, int* y) {
  if (blockIdx.x == 0) {
    int seen;
    do { asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag)); } while (seen == 0);
    y[threadIdx.x] = seen;
  } else atomicExch(flag, 5);
}
extern "C" __global__ void queue(int* next, int n, int* owner) {
  __shared__ int item;
  while (true) {
    if (threadIdx.x == 0) item = atomicAdd(next, 1);
    __syncthreads();
    int mine = item;
    __syncthreads();
    if (mine >= n) return;
    if (threadIdx.x == 0) owner[mine]++;
  }
}
extern "C" __global__ void in_vain(volatile int* flag) {
  __shared__ int s;
  if (threadIdx.x < 32)
    while (flag[0] == 0);
  __syncthreads();
  s = 1;
}
extern "C" __global__ void everybody_locks(int* lock) { while (atomicExch(lock, 1) != 0); }
"""
BUDGET = 1 << 18


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


@pytest.fixture(scope="module")
def locks() -> tt.cuda.CudaModule:
    return tt.cuda.compile(LOCKS, arch="sm_80")


@pytest.fixture(autouse=True, params=[1, 2], ids=["one worker", "two workers"])
def workers(request: pytest.FixtureRequest) -> Iterator[None]:
    with tt.scope(workers=request.param, budget=BUDGET):
        yield


def zeros(count: int = 1) -> NDArray[np.int32]:
    return np.zeros(count, np.int32)


@pytest.mark.parametrize("kernel", ["lock", "lock_with_flag", "exchange_lock", "lock_in_functions"])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (1, 7), (3, 96), (8, 33)])
def test_a_lock_that_all_threads_take(
    kernel: str, blocks: int, threads: int, module: tt.cuda.CudaModule, locks: tt.cuda.CudaModule
) -> None:
    lock, y = zeros(), zeros()
    (locks if kernel in ("lock", "lock_with_flag") else module)[kernel][blocks, threads](lock, y)
    assert (lock[0], y[0]) == after_locks(blocks * threads)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (5, 40)])
def test_tickets(blocks: int, threads: int, module: tt.cuda.CudaModule) -> None:
    order = np.full(blocks * threads, -1, np.int32)
    module["tickets"][blocks, threads](zeros(), zeros(), order)
    assert np.array_equal(np.sort(order), np.arange(blocks * threads))


@pytest.mark.parametrize("warps", [1, 2, 8, 32])
def test_warps_of_a_block_in_turn(warps: int, module: tt.cuda.CudaModule) -> None:
    y = zeros(3 * warps)
    module["warps_in_turn"][3, 32 * warps](y, zeros(3))
    assert np.array_equal(y.reshape(3, warps), np.tile(np.arange(warps)[::-1], (3, 1)))


@pytest.mark.parametrize("lower", [0, 1])
def test_lanes_of_a_warp_wait_for_each_other(lower: int, module: tt.cuda.CudaModule) -> None:
    flag, y = zeros(), zeros(32)
    module["a_lane_waits_for_a_lane"][1, 32](flag, y, lower)
    lane = np.arange(32)
    assert np.array_equal(y, np.where((lane < 7) == lower, 25 if lower else 7, -1))


@pytest.mark.parametrize("blocks", [2, 31, 200])
def test_blocks_wait_for_the_last(blocks: int, module: tt.cuda.CudaModule) -> None:
    out = zeros(blocks)
    module["last_block_produces"][blocks, 64](zeros(), zeros(), out)
    index = np.arange(blocks)
    assert np.array_equal(out, np.where((index % 3 == 0) & (index < blocks - 1), 42, 0))


@pytest.mark.parametrize("forward", [1, 0])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (17, 64), (90, 33)])
def test_decoupled_look_back(forward: int, blocks: int, threads: int, module: tt.cuda.CudaModule) -> None:
    x = np.random.default_rng(blocks).integers(-50, 50, blocks * threads).astype(np.int32)
    y = np.zeros_like(x)
    module["look_back"][blocks, threads, 4 * threads](x, y, zeros(blocks), zeros(blocks), forward)
    assert np.array_equal(y, np.cumsum(x))


@pytest.mark.parametrize(("blocks", "threads", "rounds"), [(2, 32, 5), (37, 64, 3), (150, 16, 2)])
def test_a_barrier_of_the_whole_grid(blocks: int, threads: int, rounds: int, module: tt.cuda.CudaModule) -> None:
    y = np.random.default_rng(rounds).integers(0, 99, blocks * threads).astype(np.int32)
    expected = np.roll(y, rounds) + rounds
    module["grid_barrier"][blocks, threads](np.zeros(1, np.uint32), y, np.zeros_like(y), rounds)
    assert np.array_equal(y, expected)


def test_a_load_that_is_not_strong(module: tt.cuda.CudaModule) -> None:
    y = zeros(32)
    module["plain_load"][2, 32](zeros(), y)
    assert (y == 5).all()


def test_a_function_that_waits(module: tt.cuda.CudaModule) -> None:
    y = zeros(40)
    module["wait_in_a_function"][9, 40](zeros(), y)
    assert (y == 8).all()


def test_blocks_that_take_work_from_a_queue(module: tt.cuda.CudaModule) -> None:
    owner = zeros(5000)
    module["queue"][12, 64](zeros(), 5000, owner)
    assert (owner == 1).all()


def test_waiting_in_vain(module: tt.cuda.CudaModule) -> None:
    with pytest.raises(tt.BudgetExceeded, match="all threads wait for others") as caught:
        module["in_vain"][1, 64](zeros())
    first, *places = caught.value.message.splitlines()
    assert first == f"kernel in_vain: all threads wait for others, for more than {BUDGET} loop iterations:"
    assert sorted(re.sub(r", \S*/", ", ", place) for place in places) == [
        "  32 threads loop at 'ld.volatile.global.u32', test_waiting.py:102",
        "  32 threads wait at 'bar.sync' (barrier 0: 32 threads of the block have arrived), test_waiting.py:103",
    ]
    assert caught.value.thread is None


def test_a_lock_that_nobody_frees(module: tt.cuda.CudaModule) -> None:
    with pytest.raises(tt.BudgetExceeded):
        module["everybody_locks"][3, 64](zeros())


def test_blocks_beyond_what_the_chip_holds(module: tt.cuda.CudaModule) -> None:
    """2048 threads an SM: a block in the first wave must not wait for one of the second."""
    chip = "h100"
    with tt.profile(chip=chip), pytest.raises(tt.BudgetExceeded, match=r"\d+ blocks not started: 264 are held at once"):
        module["grid_barrier"][300, 1024](np.zeros(1, np.uint32), zeros(300 * 1024), zeros(300 * 1024), 1)
