"""Code that is made to run soon: shorter than what is made to run fast, with the same results, counts and findings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

import triptych as tt
from triptych.gpu.lower.compile_kernel import FORMS
from triptych.gpu.run.kernel import kernel_of

SOURCE = """
extern "C" __global__ void mixed(int* y, const int* x, const float* f, int n) {
    __shared__ int tile[64];
    int local[6], i = threadIdx.x, lane = i & 31;
    for (int k = 0; k < 6; ++k) local[(k + n) % 6] = x[i] + k;
    tile[i] = x[i] ^ 5;
    __syncthreads();
    int value = tile[63 - i] + tile[n % 64];
    if (x[i] & 1) value = value * 3 + local[n % 6];
    else for (int k = 0; k < (x[i] & 7); ++k) value += __float2int_rn(fmaxf(f[i], 0.5f) * k);
    value += __shfl_xor_sync(~0u, value, 3) + __shfl_down_sync(~0u, value, n) + __shfl_sync(~0u, value, 7);
    if (lane < 20) value += __shfl_up_sync(0xfffffu, value, 2);
    value += __popc(__ballot_sync(~0u, value > 9)) + __syncthreads_count(value & 1);
    y[i] = value;
}
"""
PARTED = """
.version 7.8
.target sm_80
.address_size 64
.entry absent(.param .u64 y) {
    .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %p<3>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %d1, [y];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 shfl.sync.idx.b32 %r2|%p2, %r1, %r1, 31, -1;
    @!%p1 shfl.sync.bfly.b32 %r2|%p2, %r1, 24, 31, -1;
    st.global.u32 [%d1], %r2;
    ret;
}
"""


def _launch(optimise: str, folder: Path) -> tuple[NDArray[np.int32], object, object]:
    rng = np.random.default_rng(3)
    x, f = rng.integers(-50, 50, 64, np.int32), rng.standard_normal(64, np.float32)
    y = np.zeros(64, np.int32)
    kernel_of.cache_clear()
    with tt.scope(optimise=optimise, cache_folder=folder):
        launched = tt.cuda.compile(SOURCE, arch="sm_80")["mixed"][1, 64](y, x, f, 5)
    return y, dict(launched.counters), launched.findings


def test_results_counts_and_findings_are_those_of_optimised_code(tmp_path: Path) -> None:
    brief, fast = _launch("never", tmp_path), _launch("always", tmp_path)
    np.testing.assert_array_equal(brief[0], fast[0])
    assert len(np.unique(brief[0])) > 20
    assert brief[1:] == fast[1:]


@pytest.mark.parametrize("optimise", ["never", "always"])
def test_lanes_that_read_absent_ones_get_zero_and_are_told(optimise: str, tmp_path: Path) -> None:
    kernel_of.cache_clear()
    y = np.full(32, -1, np.int32)
    with tt.scope(optimise=optimise, cache_folder=tmp_path), tt.profile(check="synccheck") as profile:
        tt.ptx.compile(PARTED)["absent"][1, 32](y)
    lanes = np.arange(32)
    np.testing.assert_array_equal(y, np.where(lanes < 9, lanes, np.where((lanes ^ 24) < 9, 0, lanes ^ 24)))
    assert profile.launches[0].findings


@pytest.mark.parametrize("form", FORMS)
def test_brief_code_is_shorter_and_reckons_with_no_bits_of_lanes(form: str) -> None:
    text = tt.cuda.compile(SOURCE, arch="sm_80")["mixed"].program.text
    analysis = kernel_of(text, "mixed", warps_in_rows=True).analysis
    made: dict[bool, str] = {}
    for is_brief in (False, True):
        module = ir.Module()
        FORMS[form](analysis, module, "code", is_brief=is_brief)
        made[is_brief] = str(module)
    assert len(made[True]) < 0.9 * len(made[False])
    assert "to <32 x i1>" in made[False]
    assert "to <32 x i1>" not in made[True]
