"""Calls that go wrong: stacks that overflow, pointers to no function, functions that are nowhere. Waiting in one."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
__device__ __noinline__ int depth(int n, int stop) { return n == stop ? 0 : depth(n + 1, stop) + (n & 1) + 1; }
extern "C" __global__ void recurse(int *x, int stop) { x[threadIdx.x] = depth(0, threadIdx.x == 37 ? stop : 3); }
typedef int (*Operation)(int);
__device__ __noinline__ int one(int a) { return a + 1; }
__device__ __noinline__ int two(int a) { return a * 2; }
__device__ Operation table[3] = {one, two, nullptr};
extern "C" __global__ void pointer(int *x, const int *which) {
    int i = threadIdx.x;
    x[i] = table[which[i]](i);
}
extern "C" __global__ void garbage(int *x, long long at) { x[threadIdx.x] = ((Operation)at)(threadIdx.x); }
__device__ __noinline__ bool lock(int *p) { return atomicCAS(p, 0, 1) == 0; }
__device__ __noinline__ void unlock(int *p) { __threadfence(); atomicExch(p, 0); }
extern "C" __global__ void locks(int *p, int *count) {
    bool done = false;
    while (!done) if (lock(p)) { *(volatile int *)count += 1; unlock(p); done = true; }
}
__device__ __noinline__ int say(int n) { printf("%d:%d\n", threadIdx.x, n); return n ? say(n - 1) + n : 0; }
extern "C" __global__ void speak(int *x) { x[threadIdx.x] = say(threadIdx.x); }
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def test_a_recursion_that_does_not_end(module: tt.cuda.CudaModule) -> None:
    x = np.zeros(64, np.int32)
    module["recurse"][1, 64](x, 100)
    assert x.tolist() == [150 if i == 37 else 4 for i in range(64)]
    with pytest.raises(tt.MemoryFault) as caught:
        module["recurse"][1, 64](x, -1)
    fault = caught.value
    assert "kernel recurse: the stack overflows by thread (37,0,0) in block (0,0,0)" in fault.message
    assert (fault.thread, fault.block) == ((37, 0, 0), (0, 0, 0))
    assert fault.where is not None
    assert "depth(n + 1, stop)" in fault.where.text
    with tt.scope(stack_bytes=1 << 20), pytest.raises(tt.LaunchError, match="bytes of local memory a thread with its"):
        module["recurse"][1, 64](x, 10)


def test_the_stack_has_the_size_of_its_setting(module: tt.cuda.CudaModule) -> None:
    x = np.zeros(64, np.int32)
    with tt.scope(stack_bytes=1024), pytest.raises(tt.MemoryFault, match="the stack overflows"):
        module["recurse"][1, 64](x, 100)
    with tt.scope(stack_bytes=1 << 16):
        module["recurse"][1, 64](x, 1000)
    assert x[37] == 1500


def test_pointers_to_no_function(module: tt.cuda.CudaModule) -> None:
    x, which = np.zeros(64, np.int32), np.arange(64, dtype=np.int32) % 2
    module["pointer"][1, 64](x, which)
    assert x.tolist() == [2 * i if i % 2 else i + 1 for i in range(64)]
    which[41] = 2
    with pytest.raises(tt.MemoryFault) as caught:
        module["pointer"][1, 64](x, which)
    assert caught.value.message == (
        "kernel pointer: call of a null pointer, which is not a function, by thread (41,0,0) in block (0,0,0)"
    )
    with pytest.raises(tt.MemoryFault, match="call of 0x1234, which is not a function, by thread"):
        module["garbage"][1, 64](x, 0x1234)


def test_a_function_that_is_nowhere() -> None:
    source = '__device__ int nowhere(int);\nextern "C" __global__ void k(int *x) { x[0] = nowhere(1); }'
    module = tt.cuda.compile(source, "sm_80", ["--relocatable-device-code=true"])
    with pytest.raises(tt.UnsupportedFeature, match=r"the function '_Z7nowherei' is called") as caught:
        module["k"][1, 1](np.zeros(1, np.int32))
    assert caught.value.where is not None
    assert caught.value.where.line == 2


def test_lanes_that_wait_for_a_lock_in_a_function(module: tt.cuda.CudaModule) -> None:
    p, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    module["locks"][3, 64](p, count)
    assert (p[0], count[0]) == (0, 192)


def test_functions_that_print_while_they_recur(module: tt.cuda.CudaModule, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(5, np.int32)
    module["speak"][1, 5](x)
    assert x.tolist() == [0, 1, 3, 6, 10]
    lines = capsys.readouterr().out.splitlines()
    for lane in range(5):
        assert [line for line in lines if line.startswith(f"{lane}:")] == [f"{lane}:{n}" for n in range(lane, -1, -1)]
