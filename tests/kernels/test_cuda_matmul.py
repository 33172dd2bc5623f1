"""The ladder of CUDA matrix products: right to the bound of f32 sums, and as much work as its tiles say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

import triptych as tt
from triptych.kernels import cuda

Function = Callable[..., Any]
Matrix = npt.NDArray[Any]
BF16 = ml_dtypes.bfloat16
DIGITS: dict[Any, int] = {np.float32: 24, np.float16: 11, BF16: 8}
CASES: list[tuple[Function, npt.DTypeLike, tuple[int, int, int]]] = [
    (cuda.matmul_naive, np.float32, (5, 40, 33)),
    (cuda.matmul_tiled, np.float16, (128, 64, 48)),
    (cuda.matmul_tiled, np.float16, (65, 33, 21)),
    (cuda.matmul_wmma, np.float16, (16, 16, 16)),
    (cuda.matmul_wmma, np.float16, (128, 80, 96)),
    (cuda.matmul_mma, np.float16, (128, 128, 32)),
    (cuda.matmul_mma, np.float16, (1, 8, 8)),
    (cuda.matmul_mma, np.float16, (131, 264, 200)),
    (cuda.matmul_wgmma, np.float16, (128, 128, 64)),
    (cuda.matmul_wgmma, np.float16, (1, 8, 8)),
    (cuda.matmul_wgmma, np.float16, (131, 264, 392)),
    (cuda.matmul_wgmma, BF16, (131, 264, 72)),
]
TILES: dict[Function, tuple[int, int]] = {
    cuda.matmul_wmma: (64, 64),
    cuda.matmul_mma: (128, 32),
    cuda.matmul_wgmma: (128, 64),
}
"""The side of a block's tile of C, and its steps along k."""


def matrices(dtype: npt.DTypeLike, m: int, n: int, k: int) -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(m + n + k)
    return random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)


def assert_product(c: Matrix, a: Matrix, b: Matrix) -> None:
    """Products of f16 are exact in f32; each of k sums, and f32's products, round once: 2⁻²⁴ of what is summed up.

    The sum is rounded once more to C's type; f16's subnormal numbers are 2⁻²⁴ apart.
    """
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    expected = wide_a @ wide_b
    bound = (a.shape[1] + 1) * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b)) * 1.01
    bound += 2.0 ** -DIGITS[c.dtype.type] * np.abs(expected) + 2.0**-25
    assert c.shape == bound.shape
    assert (np.abs(c.astype(np.float64) - expected) <= bound).all()


def whole(size: int, tile: int) -> int:
    return -(-size // tile) * tile


@pytest.mark.parametrize(("function", "dtype", "sizes"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_products(function: Function, dtype: npt.DTypeLike, sizes: tuple[int, int, int]) -> None:
    (m, n, k), (a, b) = sizes, matrices(dtype, *sizes)
    with tt.profile(chip="h100") as profile:
        c = function(a, b)
    assert c.dtype == a.dtype
    assert_product(c, a, b)
    (launch,) = profile.launches
    assert launch.findings == ()
    assert launch.counters.value("global.store.bytes") == c.nbytes
    assert launch.counters.value("global.load.compulsory_bytes") >= a.nbytes + b.nbytes
    conflicts = launch.counters.get("shared.load.bank_conflicts")
    assert conflicts is None or conflicts.value == 0
    if function in TILES:
        side, depth = TILES[function]
        work = 2 * whole(m, side) * whole(n, side) * whole(k, depth)
        assert launch.counters.value(f"flops.tensor.{'f16' if dtype == np.float16 else 'bf16'}") == work


def test_sums_as_they_are() -> None:
    """In f32 nothing is rounded to the inputs' type."""
    a, b = matrices(np.float16, 32, 64, 48)
    c = cuda.matmul_mma(a, b, out_dtype="f32")
    assert c.dtype == np.float32
    assert_product(c, a, b)
    with pytest.raises(tt.ArgumentError, match="matmul_mma: out_dtype is 'bf16'; expected f16 or f32"):
        cuda.matmul_mma(a, b, out_dtype="bf16")


def test_the_traffic_of_stages() -> None:
    """Tiles of 128 × 128 read A and B once for every tile across; swizzled shared memory is without conflicts."""
    a, b = matrices(np.float16, 256, 256, 64)
    with tt.profile(chip="a100-80") as profile:
        cuda.matmul_mma(a, b)
    counters = profile.launches[0].counters
    steps = 2 * 2 * 64 // 32
    assert counters.value("global.load.bytes") == 2 * (a.nbytes + b.nbytes)
    assert counters.value("global.load.sectors") == 2 * (a.nbytes + b.nbytes) // 32
    assert counters.value("shared.load.requests") == steps * 4 * 2 * 8  # warps, halves of a step, of A and B 4 each
    assert counters.value("shared.load.wavefronts") == 4 * counters.value("shared.load.requests")
    assert counters.value("shared.store.bank_conflicts") == 0
    assert counters.value("barriers") == steps * 4


def test_the_traffic_of_a_ring() -> None:
    """A box of A and two of B a step; each warpgroup reads its half of A's and all of B's."""
    a, b = matrices(np.float16, 256, 128, 320)
    with tt.profile(chip="h100") as profile:
        cuda.matmul_wgmma(a, b)
    counters = profile.launches[0].counters
    steps = 2 * 320 // 64
    assert counters.value("tma.load.boxes") == 3 * steps
    assert counters.value("tma.load.bytes") == a.nbytes + 2 * b.nbytes
    assert counters.value("shared.tensor.load.bytes") == steps * 2 * (64 * 64 + 64 * 128) * 2
    assert counters.get("shared.load.bytes") is None  # operands never pass through registers


@pytest.mark.parametrize("function", [cuda.matmul_tiled, cuda.matmul_wmma, cuda.matmul_mma, cuda.matmul_wgmma])
def test_what_is_not_finite_spreads(function: Function) -> None:
    a, b = matrices(np.float16, 48, 32, 16)
    a[3, 5], a[7, 0], b[2, 9], b[4, 30] = np.nan, np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32)
    assert 0 < np.isnan(expected).sum() < expected.size
    c: Matrix = function(a, b)
    np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(c), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(c), np.isneginf(expected))


@pytest.mark.parametrize("function", [cuda.matmul_mma, cuda.matmul_wgmma])
def test_results_are_of_the_kind_of_the_inputs(function: Function) -> None:
    a, b = matrices(np.float16, 32, 16, 24)
    of_torch = function(torch.tensor(a), torch.tensor(b))
    assert isinstance(of_torch, torch.Tensor)
    ours = [tt.empty(one.shape, "f16").copy_(one) for one in (a, b)]
    of_ours = function(*ours)
    assert isinstance(of_ours, tt.Array)
    for c in (of_torch.numpy(), of_ours.numpy()):
        assert_product(c, a, b)


@pytest.mark.parametrize(
    ("function", "a", "b", "message"),
    [
        (cuda.matmul_naive, ("f4", 3, 4), ("f4", 5, 6), r"got a f32\[3, 4\], b f32\[5, 6\]"),
        (cuda.matmul_tiled, ("f4", 3, 4), ("f2", 4, 6), r"got a f32\[3, 4\], b f16\[4, 6\]"),
        (cuda.matmul_mma, ("f4", 8, 8), ("f4", 8, 8), r"a is f32\[8, 8\]; expected bf16 or f16"),
        (cuda.matmul_mma, ("f2", 8), ("f2", 8, 8), r"a is f16\[8\]; expected the axes \(m, k\)"),
        (cuda.matmul_mma, ("f2", 0, 8), ("f2", 8, 8), "at least one element"),
        (cuda.matmul_wmma, ("f2", 24, 16), ("f2", 16, 16), "m is 24; expected a multiple of 16"),
        (cuda.matmul_mma, ("f2", 8, 12), ("f2", 12, 8), "k is 12; expected a multiple of 8"),
        (cuda.matmul_wgmma, ("f2", 8, 8), ("f2", 8, 9), "n is 9; expected a multiple of 8"),
    ],
)
def test_refused(function: Function, a: tuple[Any, ...], b: tuple[Any, ...], message: str) -> None:
    with pytest.raises(tt.ArgumentError, match=f"{function.__name__}: .*{message}"):
        function(*(np.zeros(shape, kind) for kind, *shape in (a, b)))


def test_refused_views() -> None:
    a = np.zeros((16, 16), np.float16)
    with pytest.raises(tt.ArgumentError, match="rows one behind the other"):
        cuda.matmul_mma(a.T, a)


def test_a_chip_without_room_for_the_ring() -> None:
    a = np.zeros((8, 8), np.float16)
    with tt.profile(chip="t4"), pytest.raises(tt.LaunchError, match=r"'matmul_wgmma<.*>': 132096 bytes of"):
        cuda.matmul_wgmma(a, a)
