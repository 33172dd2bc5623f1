"""Case: k elementwise steps over n bytes move 2kn bytes as k kernels and 2n as one, in each language."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from case_helpers import F32, F64, random, total

import triptych as tt

SHAPE = (256, 48)
COUNT = SHAPE[0] * SHAPE[1]
N = 4 * COUNT
"""Bytes of the array."""
STEPS: tuple[Callable[[F64], F64], ...] = (
    lambda v: v * 1.5,
    lambda v: v + 0.25,
    lambda v: np.maximum(v, 0.0),
    lambda v: v * v,
    lambda v: v - 1.0,
)
Steps = Callable[[F32, int, int], F32]
"""(x, first, last) -> x after the steps first to last - 1, by one kernel."""
LENGTHS = pytest.mark.parametrize("k", range(1, len(STEPS) + 1))

SOURCE = """
template <int FIRST, int LAST> __global__ void chain(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int index = FIRST; index < LAST; index++) {
        switch (index) {
            case 0: v = v * 1.5f; break;
            case 1: v = v + 0.25f; break;
            case 2: v = fmaxf(v, 0.0f); break;
            case 3: v = v * v; break;
            default: v = v - 1.0f;
        }
    }
    out[i] = v;
}
"""


def check(k: int, run: Steps, profile: tt.Profile, useful: tuple[str, str], compulsory: tuple[str, str]) -> None:
    x = random(*SHAPE)
    unfused = x
    for index in range(k):
        unfused = run(unfused, index, index + 1)
    fused = run(x, 0, k)
    expected = x.astype(np.float64)
    for step in STEPS[:k]:
        expected = step(expected)
    for result in (unfused, fused):
        np.testing.assert_allclose(result, expected, rtol=4e-7, atol=4e-7)
    *parts, whole = profile.launches
    assert len(parts) == k
    for names in (useful, compulsory):
        assert total(parts, *names) == 2 * k * N
        assert total([whole], *names) == 2 * N
        assert total([whole], names[0]) == total([whole], names[1]) == N


GLOBAL = ("global.load.bytes", "global.store.bytes")
COMPULSORY = ("global.load.compulsory_bytes", "global.store.compulsory_bytes")


@LENGTHS
def test_cuda(k: int, profile: tt.Profile) -> None:
    every = [(index, index + 1) for index in range(k)] + [(0, k)]
    names = {(first, last): f"chain<{first}, {last}>" for first, last in every}
    module = tt.cuda.compile(SOURCE, arch="sm_90", names=list(names.values()))

    def run(x: F32, first: int, last: int) -> F32:
        out = np.full_like(x, np.nan)
        module[names[first, last]][-(-COUNT // 256), 256](x, out, COUNT)
        return out

    check(k, run, profile, GLOBAL, COMPULSORY)


@LENGTHS
def test_triton(k: int, triton_sm80: tt.Profile) -> None:
    kernels: Any = import_module("case_triton_kernels")

    def run(x: F32, first: int, last: int) -> F32:
        out = np.full_like(x, np.nan)
        kernels.chain[(-(-COUNT // 1024),)](x, out, COUNT, FIRST=first, LAST=last, BLOCK=1024)
        return out

    check(k, run, triton_sm80, GLOBAL, COMPULSORY)


@LENGTHS
@pytest.mark.usefixtures("nki_active")
def test_nki(k: int, profile: tt.Profile) -> None:
    kernels: Any = import_module("case_nki_kernels")
    dma = ("dma.load.bytes", "dma.store.bytes")
    hbm = ("hbm.load.compulsory_bytes", "hbm.store.compulsory_bytes")
    check(k, lambda x, first, last: np.asarray(kernels.chain(x, first, last)), profile, dma, hbm)
