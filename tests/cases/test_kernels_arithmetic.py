"""Whole kernels against float64: SAXPY in four types with edge values, and loops over a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from case_helpers import ARCHITECTURES, random, value
from numpy.typing import NDArray

import triptych as tt

Target = pytest.mark.parametrize("target", ARCHITECTURES)
SAXPY = {
    "float": (np.float32, "f32", 24),
    "double": (np.float64, "f64", 53),
    "__half": (np.float16, "f16", 11),
    "__nv_bfloat16": (ml_dtypes.bfloat16, "bf16", 8),
}
"""C++ type -> (numpy's, the counter's name, bits of the significand)."""
NAMES = [f"saxpy<{name}>" for name in SAXPY]


def module(target: str) -> tt.cuda.CudaModule:
    return tt.cuda.compile(Path(__file__).with_name("case_kernels.cu"), arch=target, names=NAMES)


def limits(dtype: Any) -> Any:  # noqa: ANN401  # ml_dtypes' types are not numpy's
    return cast("Any", ml_dtypes.finfo)(dtype)


def edge_values(dtype: Any) -> NDArray[Any]:  # noqa: ANN401  # ml_dtypes' types are not numpy's
    info = limits(dtype)
    numbers: list[float] = [
        info.max,
        info.smallest_normal,
        info.smallest_subnormal,
        info.eps,
        1.0,
        1.5,
        np.inf,
        0.0,
        3.0,
    ]
    return np.array([*numbers, *(-float(number) for number in numbers), np.nan]).astype(dtype)


@Target
@pytest.mark.parametrize("name", SAXPY)
@pytest.mark.parametrize("a", [-1.75, 0.0, 3.0])
def test_saxpy(name: str, a: float, target: str) -> None:
    dtype, counter, bits = SAXPY[name]
    edges = edge_values(dtype)
    x = np.concatenate([np.repeat(edges, edges.size), random(1000).astype(dtype)])
    y = np.concatenate([np.tile(edges, edges.size), random(1000, seed=1).astype(dtype)])
    out, n = y.copy(), x.size
    report = module(target)[f"saxpy<{name}>"][-(-n // 128), 128](n, a, x, out)
    with np.errstate(all="ignore"):
        wide = np.longdouble(a) * x.astype(np.longdouble) + y.astype(np.longdouble)
        expected = wide.astype(np.float64).astype(dtype)
    assert np.array_equal(np.isnan(out), np.isnan(expected))
    infinite = np.isinf(expected)
    assert np.array_equal(out[infinite], expected[infinite])
    finite = np.isfinite(expected)
    assert bool(np.isfinite(out[finite]).all())
    error = np.abs(out[finite].astype(np.longdouble) - wide[finite])
    smallest = np.longdouble(limits(dtype).smallest_subnormal)
    # fma rounds once; long double has 64 bits, so for f64 the reference itself is off by 2^-64 of its terms.
    terms = np.abs(np.longdouble(a) * x[finite].astype(np.longdouble)) + np.abs(y[finite].astype(np.longdouble))
    allowed = np.abs(wide[finite]) * np.longdouble(2.0) ** -bits + smallest / 2 + terms * np.longdouble(2.0) ** -62
    assert bool((error <= allowed).all())
    assert value(report, f"flops.{counter}") == 2 * n
    size = np.dtype(dtype).itemsize
    assert value(report, "global.load.bytes") == 2 * size * n
    assert value(report, "global.store.bytes") == size * n


@Target
@pytest.mark.parametrize(("grid", "block", "n"), [(1, 32, 1000), (3, 96, 5000), (40, 256, 5000), (2, 1, 77)])
def test_a_grid_stride_loop(grid: int, block: int, n: int, target: str) -> None:
    x, y = random(n), np.full(n + 10, -5, np.float32)
    report = module(target)["grid_stride"][grid, block](x, y, n)
    np.testing.assert_allclose(y[:n], 2.0 * x.astype(np.float64) + 1.0, rtol=2e-7, atol=1e-7)
    assert (y[n:] == -5).all()
    assert value(report, "flops.f32") == 2 * n


@Target
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 128), (130, 65, 200)])
def test_tiled_sgemm(m: int, n: int, k: int, target: str) -> None:
    a, b, c = random(m, k), random(k, n, seed=1), np.full((m, n), np.nan, np.float32)
    grid = (-(-n // 16), -(-m // 16))
    report = module(target)["sgemm"][grid, (16, 16)](a, b, c, m, n, k)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = (k + 2) * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b))
    assert bool((np.abs(c - wide_a @ wide_b) <= bound).all())
    steps = -(-k // 16)
    assert value(report, "flops.f32") == 2 * 256 * grid[0] * grid[1] * 16 * steps
    assert value(report, "barriers") == 2 * steps * 8 * grid[0] * grid[1]


@Target
@pytest.mark.parametrize(("rows", "columns", "block"), [(5, 1000, 256), (3, 31, 64), (2, 1, 32)])
def test_row_softmax_in_dynamic_shared_memory(rows: int, columns: int, block: int, target: str) -> None:
    x, y = 5 * random(rows, columns), np.full((rows, columns), np.nan, np.float32)
    x[0, 0] = -np.inf if columns > 1 else 80.0
    report = module(target)["softmax"][rows, block, 4 * block](x, y, columns)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-9)
    assert report.record.shared_bytes == 4 * block


@Target
def test_float4(target: str) -> None:
    n = 1000
    x, y = random(4 * n), np.full(4 * n, np.nan, np.float32)
    report = module(target)["scale4"][4, 256](tt.data_ptr(x), tt.data_ptr(y), 0.1, n)
    assert np.array_equal(y, np.float32(0.1) * x)
    assert value(report, "global.load.requests") == -(-n // 32)
    assert value(report, "global.load.sectors") == 4 * n * 4 // 32
    assert value(report, "global.load.bytes") == 16 * n
