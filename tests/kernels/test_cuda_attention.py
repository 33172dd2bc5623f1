"""FlashAttention in CUDA: both generations against float64, to a bound that follows from the element type."""

from __future__ import annotations

import math
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
Tensor = npt.NDArray[Any]
Shape = tuple[int, int, int, int, int, int]
"""Batch, heads of q, heads of k and v, n, n_kv, d."""
FUNCTIONS: dict[Function, int] = {cuda.attention_mma: 64, cuda.attention_wgmma: 128}
"""With the side of their tiles."""
DTYPES: dict[tuple[Function, int], npt.DTypeLike] = {
    (cuda.attention_mma, 64): np.float16,
    (cuda.attention_mma, 128): ml_dtypes.bfloat16,
    (cuda.attention_wgmma, 64): ml_dtypes.bfloat16,
    (cuda.attention_wgmma, 128): np.float16,
}
"""Each generation with both, in two kernels: they take seconds to compile."""
DIGITS = {np.float16: 11, ml_dtypes.bfloat16: 8}
SHAPES: list[Shape] = [
    (2, 2, 2, 128, 128, 64),
    (1, 4, 2, 200, 200, 64),
    (1, 2, 1, 65, 300, 64),
    (1, 1, 1, 1, 77, 64),
    (1, 2, 2, 256, 256, 128),
    (2, 6, 2, 77, 77, 128),
    (1, 3, 1, 130, 257, 128),
]


def tensors(function: Function, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    batch, heads, heads_kv, n, n_kv, d = shape
    dtype = DTYPES[function, d]
    random = np.random.default_rng(sum(shape))
    q = random.standard_normal((batch, heads, n, d)).astype(dtype)
    k, v = (random.standard_normal((batch, heads_kv, n_kv, d)).astype(dtype) for _ in range(2))
    return q, k, v


def assert_attention(out: Tensor, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, scale: float | None = None) -> None:
    """The float64 result, but for roundings: of probabilities and of the result to the element type, of f32 scores.

    Probabilities below f16's normal numbers lose up to 2⁻²⁵ each. A score's error, of d + 2 roundings of its absolute
    terms, is a relative one of its probability and of their sum; exp2 and the sum add less than 2⁻²⁰.
    """
    digits = DIGITS[q.dtype.type]
    wide_q, wide_k, wide_v = (one.astype(np.float64) for one in (q, k, v))
    wide_k, wide_v = (np.repeat(one, q.shape[1] // k.shape[1], axis=1) for one in (wide_k, wide_v))
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    scores = wide_q @ wide_k.swapaxes(2, 3) * factor
    if causal:
        rows, columns = np.indices(scores.shape[2:])
        scores[..., columns > rows + k.shape[2] - q.shape[2]] = -np.inf
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    expected, terms = weights @ wide_v, weights @ np.abs(wide_v)
    score_error = (q.shape[3] + 2) * 2.0**-24 * factor * (np.abs(wide_q) @ np.abs(wide_k).swapaxes(2, 3)).max()
    bound = 2.0**-digits * (terms + np.abs(expected)) + (2 * score_error + 2.0**-20) * terms
    bound += k.shape[2] * 2.0**-25 * np.abs(wide_v).max()
    assert out.dtype == q.dtype
    assert out.shape == q.shape
    assert (np.abs(out.astype(np.float64) - expected) <= bound).all()


def tiles(n: int, n_kv: int, side: int, causal: bool) -> int:
    """Of the scores, those that are not hidden as a whole."""
    firsts = range(0, n, side)
    return sum(-(-(min(n_kv, first + side + n_kv - n) if causal else n_kv) // side) for first in firsts)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_attention(function: Function, shape: Shape, causal: bool) -> None:
    (batch, heads, _, n, n_kv, d), side = shape, FUNCTIONS[function]
    q, k, v = tensors(function, shape)
    with tt.profile(chip="h100") as profile:
        assert_attention(function(q, k, v, causal=causal), q, k, v, causal=causal)
    (launch,) = profile.launches
    assert launch.findings == ()
    counters = launch.counters
    work = batch * heads * tiles(n, n_kv, side, causal) * 2 * 2 * side * side * d
    assert counters.value(f"flops.tensor.{'f16' if q.dtype == np.float16 else 'bf16'}") == work
    assert counters.value("global.store.bytes") == q.nbytes  # never the scores
    conflicts = counters.get("shared.load.bank_conflicts")
    assert conflicts is None or conflicts.value == 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_long_head(function: Function) -> None:
    """K and V once for each tile of q, at most; q once. No more than that moves."""
    q, k, v = tensors(function, (1, 1, 1, 1024, 1024, 64))
    with tt.profile(chip="h100") as profile:
        assert_attention(function(q, k, v, causal=True), q, k, v, causal=True)
    counters, side = profile.launches[0].counters, FUNCTIONS[function]
    tile_bytes = side * 64 * 2
    assert counters.value("global.load.bytes") == q.nbytes + 2 * tile_bytes * tiles(1024, 1024, side, causal=True)
    assert counters.value("global.store.bytes") == q.nbytes


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_scale(function: Function) -> None:
    q, k, v = tensors(function, (1, 2, 1, 100, 150, 64))
    assert_attention(function(q, k, v, causal=True, scale=0.3), q, k, v, causal=True, scale=0.3)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_far_apart(function: Function) -> None:
    """The maximum moves from tile to tile, by far more than exp of f32 could hold without it."""
    q, k, v = tensors(function, (1, 1, 1, 64, 400, 64))
    q[:], k[:] = 8, np.linspace(-8, 8, 400)[:, None]
    assert_attention(function(q, k, v), q, k, v, causal=False)
    assert_attention(function(q, -k, v), q, -k, v, causal=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_of_the_kind_of_the_inputs(function: Function) -> None:
    q, k, v = tensors(function, (1, 1, 1, 40, 40, 64))
    torch_dtype = torch.float16 if q.dtype == np.float16 else torch.bfloat16
    of_torch = function(*(torch.tensor(one.astype(np.float32), dtype=torch_dtype) for one in (q, k, v)))
    assert isinstance(of_torch, torch.Tensor)
    of_ours = function(*(tt.empty(one.shape, one.dtype).copy_(one) for one in (q, k, v)))
    assert isinstance(of_ours, tt.Array)
    for out in (of_torch.float().numpy().astype(q.dtype), of_ours.numpy()):
        assert_attention(out, q, k, v, causal=False)


@pytest.mark.parametrize(
    ("q", "k", "options", "message"),
    [
        ((1, 2, 8, 64), (1, 2, 8, 128), {}, r"expected q \(batch, heads, n, d\), k \(batch, heads_kv, n_kv, d\)"),
        ((1, 2, 8, 64), (2, 2, 8, 64), {}, r"q f\d+\[1, 2, 8, 64\], k"),
        ((1, 2, 8, 96), (1, 2, 8, 96), {}, "expected d = 64 or 128"),
        ((1, 3, 8, 64), (1, 2, 8, 64), {}, "heads of q to be a multiple"),
        ((1, 1, 9, 64), (1, 1, 8, 64), {"causal": True}, "at least as many keys as queries"),
        ((1, 1, 9, 64), (1, 1, 8, 64), {"scale": 0.0}, "scale is 0.0; expected a finite number above 0"),
        ((1, 9, 64), (1, 1, 8, 64), {}, r"q is f16\[1, 9, 64\]; expected the axes \(batch, heads, n, d\)"),
    ],
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_refused(
    function: Function, q: tuple[int, ...], k: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    keys = np.zeros(k, np.float16)
    with pytest.raises(tt.ArgumentError, match=f"{function.__name__}: .*{message}"):
        function(np.zeros(q, np.float16), keys, keys, **options)
