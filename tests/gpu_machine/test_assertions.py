"""`assert` in kernels: which thread, which line, and what the launch leaves behind."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
#include <cassert>
extern "C" __global__ void check(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 1;
    assert(x[i] < n && "too large");
    y[i] = 2;
}
__device__ __noinline__ int half(int v) {
    assert(v % 2 == 0);
    return v / 2;
}
extern "C" __global__ void inner(const int *x, int *y) { y[threadIdx.x] = half(x[threadIdx.x]); }
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n")


@pytest.mark.parametrize("workers", [1, 3])
def test_an_assertion_that_fails_stops_the_launch(module: tt.cuda.CudaModule, workers: int) -> None:
    x, y = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    with tt.scope(workers=workers), tt.profile(chip="a100") as profile, pytest.raises(tt.AssertionFailure) as caught:
        module["check"][4, (32, 2)](x, y, 100)
    fault = caught.value
    assert fault.where is not None
    place = f"{fault.where.file}:{fault.where.line}"
    assert fault.where.text == 'assert(x[i] < n && "too large");'
    assert fault.message == (
        f"{place}: void check(const int *, int *, int): block: [3,0,0], thread: [4,0,0]"
        ' Assertion `x[i] < n && "too large"` failed.'
    )
    assert (fault.kernel, fault.block, fault.thread) == ("check", (3, 0, 0), (4, 0, 0))
    (finding,) = profile.launches[0].findings
    assert (finding.check, finding.severity) == ("assert", tt.Severity.ERROR)
    assert (finding.message, finding.where) == (fault.message, fault.where)
    assert (finding.block, finding.thread) == ((3, 0, 0), (4, 0, 0))
    assert (y[:96] == 2).all()


def test_an_assertion_that_holds_costs_nothing_but_its_comparison(module: tt.cuda.CudaModule) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    launch = module["check"][1, 64](x, y, 64)
    assert (y == 2).all()
    assert launch.findings == ()
    assert "local.store.bytes" not in launch.counters


def test_an_assertion_in_a_function_that_is_called(module: tt.cuda.CudaModule) -> None:
    x, y = np.array([0, 2, 4, 7, 8, 9], np.int32), np.zeros(6, np.int32)
    with pytest.raises(tt.AssertionFailure) as caught:
        module["inner"][1, 6](x, y)
    assert "int half(int): block: [0,0,0], thread: [3,0,0] Assertion `v % 2 == 0` failed." in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.text == "assert(v % 2 == 0);"
