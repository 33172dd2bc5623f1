"""Products of matrices in Triton against numpy, their work by counters, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

import triptych as tt
from triptych.chips import GpuChip, load
from triptych.kernels.triton import grouped_matmul, matmul, persistent_matmul
from triptych.kernels.triton.matmul import TILE
from triptych.kernels.triton.persistent_matmul import TILE as PERSISTENT_TILE
from triptych.languages.triton import internals

Matrix = npt.NDArray[Any]
BF16: Any = ml_dtypes.bfloat16
BOUNDS: dict[Any, float] = {np.float16: 2.0**-11, BF16: 2.0**-8}
"""Half an ulp of a result, relatively; sums in f32 are finer."""


def matrices(*sizes: tuple[int, int, int], dtype: npt.DTypeLike = np.float16) -> list[tuple[Matrix, Matrix]]:
    generator = np.random.default_rng(3)
    return [
        (generator.standard_normal((m, k)).astype(dtype), generator.standard_normal((k, n)).astype(dtype))
        for m, n, k in sizes
    ]


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take less time to compile."""
    for name in "BLOCK_M", "BLOCK_N":
        monkeypatch.setitem(TILE, name, 64)


def small_chip() -> GpuChip:
    """Three multiprocessors: programs that stay have more than one tile."""
    h100 = load("h100")
    assert isinstance(h100, GpuChip)
    return replace(h100, sm_count=3)


def as_array(matrix: Matrix) -> tt.Array:
    array = tt.empty(matrix.shape, matrix.dtype)
    array.numpy()[:] = matrix
    return array


def check(c: Matrix, a: Matrix, b: Matrix) -> None:
    left, right = a.astype(np.float64), b.astype(np.float64)
    assert c.dtype == a.dtype
    bound = BOUNDS[a.dtype.type] * abs(left @ right) + 2.0**-18 * (abs(left) @ abs(right))
    assert (abs(c.astype(np.float64) - left @ right) <= bound).all()


def test_matmul() -> None:
    """By `wgmma`."""
    ((a, b),) = matrices((200, 136, 72), dtype=BF16)
    with tt.profile(chip="h100", target="sm_90") as profile:
        check(matmul(a, b), a, b)
    (launch,) = profile.launches
    assert launch.grid == (4, 1, 1)
    assert launch.counters.value("flops.tensor.bf16") == 4 * 2 * 128 * 128 * 96
    assert launch.counters.value("shared.tensor.load.requests") > 0
    assert launch.counters.value("global.store.bytes") == 200 * 136 * 2
    assert launch.findings == ()


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("sizes", [(100, 72, 40), (72, 136, 232), (130, 8, 8), (8, 264, 24)])
def test_matmul_by_mma(sizes: tuple[int, int, int]) -> None:
    ((a, b),) = matrices(sizes)
    m, n, k = sizes
    with tt.profile(chip="a100", target="sm_80") as profile:
        check(matmul(a, b), a, b)
    (launch,) = profile.launches
    tiles = -(-m // 64) * -(-n // 64)
    assert launch.grid == (tiles, 1, 1)
    assert launch.counters.value("flops.tensor.f16") == tiles * 2 * 64 * 64 * -(-k // 32) * 32
    assert launch.findings == ()


def test_persistent_matmul(monkeypatch: pytest.MonkeyPatch) -> None:
    """By descriptors, more tiles than programs: three multiprocessors have six tiles."""
    monkeypatch.setitem(PERSISTENT_TILE, "BLOCK_N", 64)
    ((a, b),) = matrices((300, 104, 104))
    with tt.profile(chip=small_chip(), target="sm_90") as profile:
        check(persistent_matmul(a, b), a, b)
    (launch,) = profile.launches
    assert launch.grid == (3, 1, 1)
    assert launch.counters.value("tma.load.boxes") == 6 * 2 * 2
    assert launch.counters.value("shared.tensor.load.requests") > 0
    assert launch.findings == ()


def test_specialised_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of warps multiply, the first of all has boxes copied for them."""
    monkeypatch.setitem(PERSISTENT_TILE, "BLOCK_N", 64)
    ((a, b),) = matrices((260, 72, 200), dtype=BF16)
    with tt.profile(chip=small_chip(), target="sm_90") as profile:
        check(persistent_matmul(a, b, warp_specialize=True), a, b)
    assert profile.launches[0].block == (3 * 128, 1, 1)
    assert profile.findings == ()


@pytest.mark.usefixtures("small_tiles")
def test_grouped_matmul() -> None:
    pairs = matrices((200, 136, 104), (16, 24, 40), (130, 128, 8), dtype=BF16)
    with tt.profile(chip=small_chip(), target="sm_80") as profile:
        for c, pair in zip(grouped_matmul(*zip(*pairs, strict=True)), pairs, strict=True):
            check(c, *pair)
    (launch,) = profile.launches
    assert launch.grid == (6, 1, 1)
    assert launch.findings == ()


@pytest.mark.usefixtures("small_tiles")
def test_kinds_of_arrays_and_the_driver() -> None:
    """What comes out is what went in, and Triton is left as it was."""
    before = internals.chosen_driver()
    ((a, b),) = matrices((40, 40, 24))
    with tt.profile(chip="a100", target="sm_80"):
        of_torch = matmul(torch.tensor(a), torch.tensor(b))
        of_arrays = matmul(*(as_array(x) for x in (a, b)))
    assert isinstance(of_torch, torch.Tensor)
    assert isinstance(of_arrays, tt.Array)
    check(of_torch.numpy(), a, b)
    check(of_arrays.numpy(), a, b)
    assert internals.chosen_driver() is before


A, B = np.zeros((8, 16), np.float16), np.zeros((16, 8), np.float16)
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "shapes": (lambda: matmul(A, A), r"got a f16\[8, 16\], b f16\[8, 16\]; expected a \(m, k\), b \(k, n\) of"),
    "types": (lambda: matmul(A, B.astype(np.float64)), r"matmul: b is f64\[16, 8\]; expected bf16 or f16"),
    "axes": (lambda: matmul(A[0], B), r"matmul: a is f16\[16\]; expected the axes \(m, k\)"),
    "rows": (lambda: persistent_matmul(A[:, :12].copy(), B[:12]), "persistent_matmul: k is 12; expected a multiple"),
    "pairs": (lambda: grouped_matmul([A], []), "got 1 arrays a and 0 arrays b; expected pairs"),
    "one type": (
        lambda: grouped_matmul([A, A.astype(BF16)], [B, B.astype(BF16)]), "expected products of one element type"
    ),
    "second": (lambda: grouped_matmul([A, A], [B, A]), "product 1: got a f16"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_named(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(tt.ArgumentError, match=message):
        call()
