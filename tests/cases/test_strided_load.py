"""Case: `C[i] = A[i * 17]`: each lane of a full warp reads a sector of its own."""

from __future__ import annotations

import numpy as np
from case_helpers import random, value

import triptych as tt

SOURCE = """
extern "C" __global__ void strided(const float *A, float *C, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) C[i] = A[i * stride];
}
"""


def test_stride_17_takes_32_sectors_a_request() -> None:
    n = 1 << 12
    a, c = random(17 * n), np.empty(n, np.float32)
    report = tt.cuda.compile(SOURCE, arch="sm_90")["strided"][n // 256, 256](a, c, 17, n)
    assert np.array_equal(c, a[::17])
    requests = value(report, "global.load.requests")
    assert requests == n // 32
    assert report.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"].value == 32 * requests
    assert value(report, "global.load.bytes") == 4 * n
    assert value(report, "global.load.compulsory_bytes") == 64 * n, "68 bytes apart: each lane is in a pair of its own"
    assert value(report, "global.store.sectors") == 4 * value(report, "global.store.requests")


def test_sectors_by_stride() -> None:
    n = 1024
    kernel = tt.cuda.compile(SOURCE, arch="sm_90")["strided"]
    for stride, sectors in ((0, 1), (1, 4), (2, 8), (3, 12), (4, 16), (7, 28), (8, 32), (9, 32)):
        a, c = random(max(stride, 1) * n), np.empty(n, np.float32)
        report = kernel[4, 256](a, c, stride, n)
        assert value(report, "global.load.sectors") == sectors * value(report, "global.load.requests"), stride
