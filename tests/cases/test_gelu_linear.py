"""Case: y = GELU(W x + b), x a vector, as three kernels and as one: one result, and the intermediates' bytes gone."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_helpers import F32, F64, random, total

import triptych as tt

M, K = 128, 384
BYTES = 4 * M
"""Bytes of an intermediate."""
Solve = Callable[[F32, F32, F32], F32]


def problem() -> tuple[tuple[F32, F32, F32], F64, F64]:
    """W, x and b; the float64 result; and the error that f32 arithmetic in any order may make in each element."""
    w, x, b = random(M, K) / np.float32(math.sqrt(K)), random(K, seed=1), random(M, seed=2)
    inner = w.astype(np.float64) @ x.astype(np.float64) + b.astype(np.float64)
    expected = 0.5 * inner * (1.0 + np.vectorize(math.erf)(inner / math.sqrt(2.0)))
    terms = np.abs(w).astype(np.float64) @ np.abs(x) + np.abs(b)
    return (w, x, b), expected, 2.0**-24 * (1.13 * (K + 2) * terms + 16.0 * np.abs(inner))


def check(unfused: Solve, fused: Solve, profile: tt.Profile, load: str, store: str, launches: int = 3) -> None:
    inputs, expected, bound = problem()
    kept = [array.copy() for array in inputs]
    results = [solve(*inputs).reshape(-1) for solve in (unfused, fused)]
    for result in results:
        assert result.dtype == np.float32
        assert bool((np.abs(result - expected) <= bound).all())
    assert all(np.array_equal(*pair) for pair in zip(inputs, kept, strict=True))
    *parts, whole = profile.launches
    assert len(parts) == launches
    intermediates = launches - 1
    assert total(parts, load) - total([whole], load) == intermediates * BYTES
    assert total(parts, store) - total([whole], store) == intermediates * BYTES
    assert total([whole], load) == 4 * (M * K + K + M), "W, x and b once"
    assert total([whole], store) == BYTES
    assert not any(name.startswith("flops.tensor") for name in whole.counters if whole.language != "nki")


def test_cuda(profile: tt.Profile) -> None:
    module = tt.cuda.compile(Path(__file__).with_name("case_gelu.cu"))
    grid, block = M // 4, (32, 4)

    def unfused(w: F32, x: F32, b: F32) -> F32:
        z, v, y = (np.full(M, np.nan, np.float32) for _ in range(3))
        module["matvec"][grid, block](w, x, z, M, K)
        module["add_bias"][1, M](z, b, v, M)
        module["gelu"][1, M](v, y, M)
        return y

    def fused(w: F32, x: F32, b: F32) -> F32:
        y = np.full(M, np.nan, np.float32)
        module["gelu_linear"][grid, block](w, x, b, y, M, K)
        return y

    check(unfused, fused, profile, "global.load.compulsory_bytes", "global.store.compulsory_bytes")
    *parts, whole = profile.launches
    useful = ("global.load.bytes", "global.store.bytes")
    assert total(parts, *useful) - total([whole], *useful) == 2 * 2 * BYTES
    flops = "flops.f32"
    assert total([whole], flops) == total(parts, flops), "the same arithmetic"


def test_triton(triton_sm80: tt.Profile) -> None:
    kernels: Any = import_module("case_triton_kernels")
    tile = {"BLOCK_M": 16, "BLOCK_K": 64}

    def unfused(w: F32, x: F32, b: F32) -> F32:
        z, v, y = (np.full(M, np.nan, np.float32) for _ in range(3))
        kernels.matvec[(M // 16,)](w, x, z, M, K, **tile)
        kernels.add_bias[(1,)](z, b, v, M, BLOCK=M)
        kernels.gelu[(1,)](v, y, M, BLOCK=M)
        return y

    def fused(w: F32, x: F32, b: F32) -> F32:
        y = np.full(M, np.nan, np.float32)
        kernels.gelu_linear[(M // 16,)](w, x, b, y, M, K, **tile)
        return y

    check(unfused, fused, triton_sm80, "global.load.compulsory_bytes", "global.store.compulsory_bytes")


@pytest.mark.usefixtures("nki_active")
def test_nki(profile: tt.Profile) -> None:
    kernels: Any = import_module("case_nki_kernels")

    def unfused(w: F32, x: F32, b: F32) -> F32:
        z = kernels.matvec(np.ascontiguousarray(w.T), x.reshape(-1, 1))
        return np.asarray(kernels.gelu(kernels.add_tile(z, b.reshape(-1, 1))))

    def fused(w: F32, x: F32, b: F32) -> F32:
        return np.asarray(kernels.gelu_linear(np.ascontiguousarray(w.T), x.reshape(-1, 1), b.reshape(-1, 1)))

    check(unfused, fused, profile, "dma.load.bytes", "dma.store.bytes")
    assert total(profile.launches[-1:], "flops.tensor.f32") == 2 * M * K
