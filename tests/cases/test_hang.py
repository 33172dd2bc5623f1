"""Case: kernels that loop for ever are stopped by their budget, and the session goes on."""

from __future__ import annotations

import numpy as np
import pytest
from case_helpers import refused

import triptych as tt

SOURCE = """
extern "C" __global__ void wait_for(volatile int *flag, int *out) {
    while (flag[0] == 0) { }
    out[threadIdx.x] = 1;
}
extern "C" __global__ void count_down(int *out, unsigned n) {
    unsigned steps = 0;
    for (unsigned i = threadIdx.x + n; i != 0; i -= 2) { steps += out[0]; if (steps > 4000000000u) break; }
    out[threadIdx.x] = steps;
}
extern "C" __global__ void one_lane(int *out) {
    int i = threadIdx.x == 17;
    while (i) { i = i * 3 | 1; out[17] = i; }
    out[0] = 1;
}
extern "C" __global__ void long_but_finite(int *out, int n) {
    int v = threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < n; i++) { v = v * 1664525 + 1013904223; out[threadIdx.x] = v; }
}
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_90")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["wait_for", "count_down", "one_lane"])
def test_endless_loops(name: str, workers: int, module: tt.cuda.CudaModule, profile: tt.Profile) -> None:
    out, other = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    rest = {"wait_for": (np.zeros(1, np.int32), out), "count_down": (out, 1), "one_lane": (out,)}[name]
    told = ("warp", "block", "20000 loop iterations")
    if name == "wait_for":
        told = ("all threads wait for others", "20000 loop iterations", "threads", "ld.volatile", "test_hang.py:13")
    with (
        tt.scope(budget=20_000, workers=workers),
        refused(tt.BudgetExceeded, f"kernel {name}", *told, "TRIPTYCH_BUDGET"),
    ):
        module[name][4, 64](*rest)
    assert [finding.check for finding in profile.findings] == ["budget"]
    assert np.array_equal(other, np.arange(64)), "what the kernel does not know is as it was"
    module["long_but_finite"][1, 64](other, 10)
    assert not np.array_equal(other, np.arange(64)), "the next launch runs"


def test_a_long_loop_that_ends_is_no_hang(module: tt.cuda.CudaModule) -> None:
    out = np.zeros(32, np.int32)
    with tt.scope(budget=100_000), refused(tt.BudgetExceeded, "long_but_finite"):
        module["long_but_finite"][1, 32](out, 200_000)
    with tt.scope(budget=300_000):
        module["long_but_finite"][1, 32](out, 200_000)
    v = np.arange(32, dtype=np.uint32)
    for _ in range(200_000):
        v = v * np.uint32(1664525) + np.uint32(1013904223)
    assert np.array_equal(out.view(np.uint32), v)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_warp_is_charged_its_own_iterations_alone(workers: int, module: tt.cuda.CudaModule) -> None:
    out = np.zeros(256, np.int32)
    with tt.scope(budget=1000, workers=workers):
        module["long_but_finite"][100, 256](out, 999)
        with refused(tt.BudgetExceeded, "long_but_finite", "1000 loop iterations"):
            module["long_but_finite"][100, 256](out, 1002)


def test_a_deadly_budget_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPTYCH_BUDGET", "never")
    with refused(tt.SettingError, "TRIPTYCH_BUDGET='never'", "whole number of 1 or more"):
        tt.settings()
