"""Case: `vec_add` in CUDA C++: 3000 elements with a guard, and 2²⁰ on the roofline of every GPU."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from case_helpers import ARCHITECTURES, gpu_chips, random, value

import triptych as tt

SOURCE = """
extern "C" __global__ void vec_add(const float *A, const float *B, float *C, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) C[i] = A[i] + B[i];
}
"""


@pytest.mark.parametrize("target", ARCHITECTURES)
def test_3000_elements_in_12_blocks(target: str) -> None:
    a, b, c = random(3000), random(3000, seed=1), np.full(3000, np.nan, np.float32)
    kernel = tt.cuda.compile(SOURCE, arch=target)["vec_add"]
    whole = kernel[(12,), (256,)](a, b, c, 3000)
    assert np.array_equal(c, a + b)
    assert value(whole, "flops.f32") == 3000
    assert value(whole, "branches") == 12 * 8, "one guard a warp"
    assert value(whole, "branches.divergent") == 1
    full = kernel[(11,), (256,)](a, b, c, 3000)
    assert value(full, "flops.f32") == value(full, "global.store.bytes") // 4 == 11 * 256, "blocks 0 to 10 are full"
    assert value(full, "branches.divergent") == 0
    assert value(whole, "flops.f32") - value(full, "flops.f32") == 184, "the last block's threads that pass the guard"
    stores = value(whole, "global.store.requests") - value(full, "global.store.requests")
    assert stores == 5 + 1, "five full warps, one of 24 threads; two warps do not get there"


def test_the_guard_s_divergence_is_at_its_line() -> None:
    a, c = random(3000), np.empty(3000, np.float32)
    report = tt.cuda.compile(SOURCE, arch="sm_80")["vec_add"][(12,), (256,)](a, a, c, 3000)
    divergent = {line.where.text: line.counters.value("branches.divergent") for line in report.lines}
    assert {text: count for text, count in divergent.items() if count} == {"if (i < n) C[i] = A[i] + B[i];": 1}


def test_a_million_elements_on_every_gpu() -> None:
    n = 1 << 20
    a, b, c = random(n), random(n, seed=1), np.empty(n, np.float32)
    kernel = tt.cuda.compile(SOURCE, arch="sm_80")["vec_add"]
    with ExitStack() as stack:
        profiles = [stack.enter_context(tt.profile(chip=chip)) for chip in gpu_chips()]
        report = kernel[(n // 256,), (256,)](a, b, c, n)
    assert np.array_equal(c, a + b)
    assert value(report, "global.load.sectors") == 4 * value(report, "global.load.requests")
    assert value(report, "global.load.requests") == 2 * n // 32
    assert value(report, "global.load.bytes") == value(report, "global.load.compulsory_bytes") == 8_388_608
    assert value(report, "global.store.bytes") == value(report, "global.store.compulsory_bytes") == 4_194_304
    assert len(profiles) >= 10
    for profile in profiles:
        roofline = profile.launches[0].roofline
        assert roofline.chip == profile.chip.name
        assert (roofline.flops, roofline.bytes) == (n, 12_582_912)
        assert roofline.intensity == 1 / 12
        assert roofline.bound == "memory"
        assert roofline.intensity < roofline.ridge_point
        assert 0 < roofline.floor_s <= roofline.estimate_s
