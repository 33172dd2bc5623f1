"""What depends on the order of blocks comes out the same in every run and for any number of workers."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt
from triptych.gpu.run.kernel import kernel_of

SOURCE = """
__device__ unsigned turn, arrived;

extern "C" __global__ void append(const int* x, int* out, unsigned* count) {   // out's order is that of the arrivals
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] % 3 == 0) out[atomicAdd(count, 1u)] = x[i];
}
extern "C" __global__ void rounded_sum(const float* x, float* sum) {
    atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
extern "C" __global__ void meet(const unsigned* blocks, int* seen) {   // all blocks wait for the last one
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1u);
        while (*(volatile unsigned*)&arrived % *blocks != 0u) {}
        seen[blockIdx.x] = 1;
    }
}
extern "C" __global__ void histogram(const int* x, int* counts) {
    atomicAdd(&counts[x[blockIdx.x * blockDim.x + threadIdx.x] & 15], 1);
}
extern "C" __global__ void largest(const int* x, int* most) {
    atomicMax(most, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
extern "C" __global__ void within(const int* x, int* out) {   // a count of the block's own
    __shared__ int n; if (threadIdx.x == 0) n = 0; __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] % 3 == 0) out[blockIdx.x * blockDim.x + atomicAdd(&n, 1)] = x[i];
}
"""
BLOCKS, THREADS = 40, 96
MODULE = tt.cuda.compile(SOURCE, arch="sm_80")


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("append", True), ("rounded_sum", True), ("meet", True),
        ("histogram", False), ("largest", False), ("within", False),
    ],
)  # fmt: skip
def test_where_order_matters(name: str, matters: bool) -> None:
    kernel = kernel_of(MODULE[name].program.text, MODULE[name].entry.name, warps_in_rows=True)
    assert kernel.facts.order_matters == matters


def run_all(workers: int) -> list[object]:
    generator = np.random.default_rng(5)
    x = generator.integers(0, 1000, BLOCKS * THREADS, np.int32)
    floats = generator.standard_normal(BLOCKS * THREADS, np.float32)
    out, count, total = np.zeros_like(x), np.zeros(1, np.uint32), np.zeros(1, np.float32)
    seen = np.zeros(BLOCKS, np.int32)
    with tt.scope(workers=workers):
        launches = [
            MODULE["append"][BLOCKS, THREADS](x, out, count),
            MODULE["rounded_sum"][BLOCKS, THREADS](floats, total),
            MODULE["meet"][BLOCKS, THREADS](np.array([BLOCKS], np.uint32), seen),
        ]
    multiples = x[x % 3 == 0]
    assert int(count[0]) == len(multiples)
    assert np.array_equal(np.sort(out[: len(multiples)]), np.sort(multiples))
    assert total[0] == pytest.approx(floats.sum(dtype=np.float64), abs=1e-3)
    assert seen.all()
    counters = [{name: counter.value for name, counter in launch.counters.items()} for launch in launches]
    return [out.tobytes(), total.tobytes(), counters]


def test_any_number_of_workers_gives_the_same() -> None:
    once = run_all(1)
    assert [run_all(workers) for workers in (2, 3, 4)] == [once] * 3
