"""Case: a 32×32 transposition through shared memory: 32-way bank conflicts, and none with a column of padding."""

from __future__ import annotations

import numpy as np
import pytest
from case_helpers import ARCHITECTURES, random, value

import triptych as tt

SOURCE = """
template <int COLUMNS, bool COLUMNS_IN> __global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][COLUMNS];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (COLUMNS_IN) tile[threadIdx.x][threadIdx.y] = in[y * n + x];
    else tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    int row = blockIdx.x * 32 + threadIdx.y, column = blockIdx.y * 32 + threadIdx.x;
    if (COLUMNS_IN) out[row * n + column] = tile[threadIdx.y][threadIdx.x];
    else out[row * n + column] = tile[threadIdx.x][threadIdx.y];
}
"""
N = 96
WARPS = N * N // 32


@pytest.mark.parametrize("target", ARCHITECTURES)
@pytest.mark.parametrize(("way", "across", "along"), [("false", "load", "store"), ("true", "store", "load")])
def test_conflicts_with_and_without_padding(target: str, way: str, across: str, along: str) -> None:
    names = {columns: f"transpose<{columns}, {way}>" for columns in (32, 33)}
    module = tt.cuda.compile(SOURCE, arch=target, names=list(names.values()))
    a = random(N, N)
    for columns, name in names.items():
        out = np.full((N, N), np.nan, np.float32)
        report = module[name][(N // 32, N // 32), (32, 32)](a, out, N)
        assert np.array_equal(out, a.T)
        assert value(report, f"shared.{across}.requests") == value(report, f"shared.{along}.requests") == WARPS
        ways = 32 if columns == 32 else 1
        assert value(report, f"shared.{across}.wavefronts") == ways * WARPS
        assert value(report, f"shared.{across}.bank_conflicts") == (ways - 1) * WARPS
        assert value(report, f"shared.{along}.wavefronts") == WARPS
        assert value(report, f"shared.{along}.bank_conflicts") == 0
        assert value(report, "global.load.sectors") == value(report, "global.store.sectors") == 4 * WARPS
        assert report.record.shared_bytes == 32 * columns * 4
