"""Products of matrices by tensor cores, as `nvcuda::wmma` has them, of each element type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from family import blocks, module, normal

import triptych as tt

WMMA = {
    "by_wmma<half, float, 32>": (np.float16, np.float32, "f16", 1e-5),
    "by_wmma<half, half, 16>": (np.float16, np.float16, "f16", 2e-2),
    "by_wmma<__nv_bfloat16, float, 16>": (ml_dtypes.bfloat16, np.float32, "bf16", 1e-5),
    "by_wmma<signed char, int, 32>": (np.int8, np.int32, "s8", 0),
}
NAMES = (*WMMA, "by_tf32")
SIZES = [(1, 1, 1), (32, 32, 32), (50, 40, 70)]


def kernel(name: str) -> Any:  # noqa: ANN401  # a kernel of the module
    return module("tensor_cores", *NAMES, arch="sm_80")[name]


def matrices(kind: npt.DTypeLike, m: int, n: int, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A and B; of integers all numbers are alike."""
    if kind == np.int8:
        generator = np.random.default_rng(m + n + k)
        return generator.integers(-128, 128, (m, k), np.int8), generator.integers(-128, 128, (k, n), np.int8)
    return normal(m, m, k).astype(kind), normal(n, k, n).astype(kind)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize(("name", "case"), WMMA.items())
def test_wmma(name: str, case: tuple[Any, Any, str, float], m: int, n: int, k: int, profile: tt.Profile) -> None:
    kind, sums, pipe, error = case
    a, b = matrices(kind, m, n, k)
    c = np.arange(m * n).reshape(m, n).astype(sums) % 7
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c
    grid = (blocks(n, 32), blocks(m, 32))
    report = kernel(name)[grid, 128](a, b, c, m, n, k)
    np.testing.assert_allclose(c.astype(np.float64), wanted, rtol=error, atol=10 * error)
    depth = int(name.removesuffix(">").split()[-1])
    padded = blocks(k, depth) * depth
    assert report.counters.value(f"flops.tensor.{pipe}") == 2 * 32 * 32 * padded * grid[0] * grid[1]
    assert report.roofline.pipe == f"tensor.{pipe}"
    assert report.findings == ()


def test_wmma_of_tf32() -> None:
    a, b, c = normal(1, 32, 40), normal(2, 48, 40), np.zeros((32, 48), np.float32)
    kernel("by_tf32")[(3, 2), 32](a, b, c, 48, 40)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=2e-2)
