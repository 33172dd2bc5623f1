"""Lanes that part and meet again: values, counters, and what is refused."""

import re

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
extern "C" __global__ void parted(int* y) {
  int x = threadIdx.x;
  if (x & 1) x = __shfl_down_sync(~0u, x, 1) + 5;
  else x = __shfl_down_sync(~0u, x, 2) * 3;
  y[threadIdx.x] = x;
}
extern "C" __global__ void behind(const int* trips, int* y) {
  int x = trips[threadIdx.x];
  unsigned odd = __ballot_sync(~0u, x & 1);
  int own = x & 1 ? x : 100;
  // The compiler is kept from joining the lanes before the shuffles, each of which names one side.
  asm volatile("{ .reg .pred p; .reg .b32 n; setp.ne.u32 p, %1, 0; @p bra odd%=; vote.sync.ballot.b32 n, 1, %3;"
               " popc.b32 n, n; add.u32 %0, %0, n; bra both%=; odd%=: vote.sync.ballot.b32 n, 1, %2;"
               " popc.b32 n, n; add.u32 %0, %0, n; both%=: vote.sync.ballot.b32 n, 1, -1; }"
               : "+r"(own) : "r"(x & 1), "r"(odd), "r"(~odd));
  y[threadIdx.x] = own + 7 * __popc(__ballot_sync(~0u, x > 4));
}
extern "C" __global__ void halves(int* y) {
  int x = threadIdx.x;
  if (x < 16) x = __shfl_down_sync(0xffffu, x, 1) + 5;
  else x = __shfl_down_sync(0xffff0000u, x, 2) * 3;
  __syncwarp();
  y[threadIdx.x] = x;
}
extern "C" __global__ void ragged(const int* trips, int* y) {
  int s = 0;
  for (int i = 0; i < trips[threadIdx.x]; i++) {
    if (i & 1) continue;
    s += i;
    if (s > 20) break;
  }
  __syncthreads();
  y[threadIdx.x] = s * 100 + __popc(__ballot_sync(~0u, s > 5));
}
extern "C" __global__ void barrier_in_loop(int* y, int n) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (int i = 0; i < n; i++) {
    if (threadIdx.x == i) total += i;
    __syncthreads();
  }
  y[threadIdx.x] = total;
}
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def test_lanes_named_by_two_instructions_wait_for_each_other(module: tt.cuda.CudaModule) -> None:
    with pytest.raises(tt.DeadlockError, match=r"threads of block .0,0,0. wait for each other") as caught:
        module["parted"][1, 32](np.zeros(32, np.int32))
    told = re.findall(r"  16 threads wait at 'shfl\.sync\.down\.b32' for other lanes, (.*)", caught.value.message)
    assert len(set(told)) == 2


def test_lanes_that_run_ahead_are_waited_for(module: tt.cuda.CudaModule) -> None:
    trips = np.random.default_rng(1).integers(0, 9, 64).astype(np.int32)
    y = np.zeros(64, np.int32)
    module["behind"][1, 64](trips, y)
    for warp in range(2):
        x = trips[32 * warp : 32 * warp + 32]
        odd = x & 1 == 1
        many, above = int(odd.sum()), int((x > 4).sum())
        expected = [(value + many if value & 1 else 132 - many) + 7 * above for value in x.tolist()]
        assert y[32 * warp : 32 * warp + 32].tolist() == expected


def test_halves_of_a_warp_shuffle_on_their_own(module: tt.cuda.CudaModule) -> None:
    y = np.zeros(32, np.int32)
    module["halves"][1, 32](y)
    lane = np.arange(32)
    low = np.where(lane < 15, lane + 1, lane) + 5
    high = np.where(lane + 2 <= 31, lane + 2, lane) * 3
    # Lane 15 reads lane 16, which did not take part: the hardware leaves its value undefined.
    defined = lane != 15
    assert np.array_equal(y[defined], np.where(lane < 16, low, high)[defined])


def test_ragged_loops_meet_again(module: tt.cuda.CudaModule) -> None:
    trips = np.random.default_rng(0).integers(0, 40, 64).astype(np.int32)
    y = np.zeros(64, np.int32)
    module["ragged"][1, 64](trips, y)

    def total(count: int) -> int:
        s = 0
        for i in range(0, count, 2):
            s += i
            if s > 20:
                break
        return s

    sums = np.array([total(int(t)) for t in trips])
    votes = np.repeat([(sums[:32] > 5).sum(), (sums[32:] > 5).sum()], 32)
    assert np.array_equal(y, sums * 100 + votes)


@pytest.mark.parametrize("threads", [32, 96, 1000])
def test_barriers_in_a_loop(module: tt.cuda.CudaModule, threads: int) -> None:
    y = np.zeros(threads, np.int32)
    report = module["barrier_in_loop"][1, threads](y, 20)
    assert (y == sum(range(20))).all()
    warps = -(-threads // 32)
    assert report.counters["barriers"].value == 21 * warps
