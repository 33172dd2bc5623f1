"""Variables of modules: each module has its own, as long as its device lives; bounds of local and shared ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import LaunchError, MemoryFault
from triptych.core.plan import Choose, Plan
from triptych.gpu import DeviceMemory

COUNT = """__device__ int counter;
extern "C" __global__ void count(int* out) { out[0] = atomicAdd(&counter, 1); }"""
COUNT_TOO = COUNT + "\n// another text"
WEIGH = """__device__ float w[4] = {1, 2, 3, 4};
extern "C" __global__ void weigh(float* out) { w[threadIdx.x] *= 2; out[threadIdx.x] = w[threadIdx.x]; }"""
LOOK = """__device__ float w[4] = {1, 2, 3, 4};
extern "C" __global__ void look(float* out) { out[threadIdx.x] = w[threadIdx.x]; }"""


def compiled(source: str, name: str) -> tt.cuda.Kernel:
    return tt.cuda.compile(source, arch="sm_90")[name]


def counted(kernel: tt.cuda.Kernel) -> int:
    out = np.full(1, -1, np.int32)
    kernel[1, 1](out)
    return int(out[0])


def test_launches_keep_the_variables_of_their_module_alone() -> None:
    start = counted(compiled(COUNT, "count"))
    assert counted(compiled(COUNT, "count")) == start + 1
    other = counted(compiled(COUNT_TOO.replace("another", "yet another"), "count"))
    assert other == 0
    assert counted(compiled(COUNT, "count")) == start + 2


def test_another_module_has_its_own_initial_values() -> None:
    out = np.zeros(4, np.float32)
    compiled(WEIGH, "weigh")[1, 4](out)
    assert out.tolist() == [2, 4, 6, 8]
    compiled(LOOK, "look")[1, 4](out)
    assert out.tolist() == [1, 2, 3, 4]


def test_a_plan_starts_from_the_initial_values() -> None:
    kernel = compiled(COUNT, "count")
    counted(kernel)
    plan = kernel[1, 1].plan(np.zeros(1, np.int32))
    (name,) = (handle.storage.name for handle in plan.inputs)
    twice = replace(plan, nodes=plan.nodes * 2)
    for one, expected in ((plan, 0), (plan, 0), (twice, 1), (twice, 1)):
        out = np.full(1, -1, np.int32)
        tt.plans.run_plan(one, {name: out})
        assert out[0] == expected


def test_alternatives_of_a_plan_each_start_from_what_was_there() -> None:
    plan = compiled(COUNT, "count")[1, 1].plan(np.zeros(1, np.int32))
    (name,) = (handle.storage.name for handle in plan.inputs)
    tries = (Plan(plan.nodes),) * 3
    whole = replace(plan, nodes=(*plan.nodes, Choose(("a", "b", "c"), tries), *plan.nodes))
    out = np.full(1, -1, np.int32)
    tt.plans.run_plan(whole, {name: out})
    assert out[0] == 2  # one before, the winner's, and this one


ALLOCATE = """extern "C" __global__ void allocate(unsigned long long* out) {
    out[0] = (unsigned long long)malloc(16); }"""


def test_a_plan_starts_with_an_empty_heap() -> None:
    plan = compiled(ALLOCATE, "allocate")[1, 1].plan(np.zeros(1, np.uint64))
    (name,) = (handle.storage.name for handle in plan.inputs)
    addresses: list[int] = []
    for _ in range(2):
        out = np.zeros(1, np.uint64)
        tt.plans.run_plan(plan, {name: out})
        addresses.append(int(out[0]))
    assert addresses[0] == addresses[1] != 0


@pytest.mark.parametrize("size", [1 << 42, (1 << 63) - 1])
def test_a_heap_without_room_is_refused(size: int) -> None:
    with pytest.raises(LaunchError, match=f"no room for a heap of {size} bytes"):
        DeviceMemory().heap(size)


LOCAL = """extern "C" __global__ void local(int* out, int i, int n) {
    int a[9]; for (int j = 0; j < n; j++) a[j] = j + 10 * threadIdx.x;
    a[i] = 1; out[threadIdx.x] = a[n - 2]; }"""


@pytest.mark.parametrize("index", [9, 10, 11, 12])
def test_local_memory_ends_where_its_variables_do(index: int) -> None:
    kernel = compiled(LOCAL, "local")
    out = np.zeros(40, np.int32)
    kernel[1, 40](out, 8, 9)
    assert out.tolist() == [7 + 10 * thread for thread in range(40)]
    with pytest.raises(MemoryFault, match="a thread has 36 bytes of local memory"):
        kernel[1, 40](out, index, 9)


SHARED = """extern "C" __global__ void fixed(int* out, int i) {
    __shared__ int s[33]; s[i] = 5; __syncthreads(); out[0] = s[i]; out[1] = size(); }
extern "C" __global__ void dynamic(int* out, int i) {
    extern __shared__ int d[]; __shared__ volatile int s[33]; s[32] = 1; d[i] = 5; __syncthreads();
    out[0] = d[i] + s[32]; out[1] = size(); }"""
SIZE = """__device__ int size() { unsigned n; asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n)); return n; }
"""


def test_shared_memory_ends_where_its_variables_do() -> None:
    module = tt.cuda.compile(SIZE + SHARED, arch="sm_90")
    out = np.zeros(2, np.int32)
    assert module["fixed"][1, 1](out, 32).record.shared_bytes == 132
    assert out.tolist() == [5, 0]
    for index in (33, 34, 35, 36):
        with pytest.raises(MemoryFault, match="the block has 132 bytes of shared memory"):
            module["fixed"][1, 1](out, index)
    module["dynamic"][1, 1, 8](out, 1)
    assert out.tolist() == [6, 8]
    with pytest.raises(MemoryFault, match="the block has 152 bytes of shared memory"):
        module["dynamic"][1, 1, 8](out, 2)
    with pytest.raises(MemoryFault, match="the block has 132 bytes of shared memory"):
        module["dynamic"][1, 1](out, 0)
