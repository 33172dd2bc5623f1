"""Attention in Triton, forward and backward: against float64, with a causal mask, shared heads and odd lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import triptych as tt
from triptych.kernels.triton import attention, attention_backward, attention_forward
from triptych.kernels.triton.attention import TILE
from triptych.kernels.triton.attention_backward import TILE as BACKWARD_TILE

Tensor = npt.NDArray[Any]
BF16: Any = ml_dtypes.bfloat16
SMALL = {"BLOCK_M": 32, "BLOCK_N": 32}
"""Tiles that take less time to compile."""


def tensors(batch: int, heads: int, heads_kv: int, n: int, n_kv: int, d: int, dtype: npt.DTypeLike) -> list[Tensor]:
    """Q, k, v and the output's gradient."""
    generator = np.random.default_rng(n + n_kv)
    of_q, of_k = (batch, heads, n, d), (batch, heads_kv, n_kv, d)
    return [generator.standard_normal(shape).astype(dtype) for shape in (of_q, of_k, of_k, of_q)]


@dataclass(frozen=True)
class Wanted:
    """Everything in float64."""

    out: Tensor
    log_sums: Tensor
    gradients: tuple[Tensor, Tensor, Tensor]


def wanted(q: Tensor, k: Tensor, v: Tensor, grad_out: Tensor, *, causal: bool, scale: float | None = None) -> Wanted:
    q, k, v, grad_out = (x.astype(np.float64) for x in (q, k, v, grad_out))
    group = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(x, group, 1) for x in (k, v))
    factor = scale or q.shape[3] ** -0.5
    scores = q @ keys.swapaxes(2, 3) * factor
    if causal:
        rows, columns = np.indices(scores.shape[2:])
        scores[..., columns > rows + k.shape[2] - q.shape[2]] = -np.inf
    powers = np.exp(scores)
    p = powers / powers.sum(3, keepdims=True)
    out = p @ values
    grad_scores = p * (grad_out @ values.swapaxes(2, 3) - (grad_out * out).sum(3, keepdims=True)) * factor

    def shared(gradient: Tensor) -> Tensor:
        return gradient.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2)

    by_keys, by_values = grad_scores.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ grad_out
    return Wanted(out, np.log2(powers.sum(3)), (grad_scores @ keys, shared(by_keys), shared(by_values)))


def check(found: Tensor, right: Tensor, dtype: npt.DTypeLike) -> None:
    """Half an ulp of the result and of each of the rounded probabilities, which sum up to about 1."""
    assert found.dtype == dtype
    assert found.shape == right.shape
    ulp = 2.0**-11 if dtype is np.float16 else 2.0**-8
    np.testing.assert_allclose(found.astype(np.float64), right, rtol=4 * ulp, atol=8 * ulp)


def work(batch: int, heads: int, heads_kv: int, n: int, n_kv: int, d: int, *, causal: bool) -> int:
    """FLOPs of tiles that are not hidden as a whole."""
    rows, columns = TILE["BLOCK_M"], TILE["BLOCK_N"]
    seen = (min(n_kv, first + rows + n_kv - n) if causal else n_kv for first in range(0, n, rows))
    return batch * heads * sum(-(-keys // columns) for keys in seen) * 4 * rows * columns * d


@pytest.mark.parametrize(
    ("chip", "target", "d", "dtype", "tile", "pipe"),
    [("a100", "sm_80", 128, np.float16, SMALL, "f16"), ("h100", "sm_90", 64, BF16, {"BLOCK_N": 32}, "bf16")],
)
def test_forward(
    chip: str,
    target: str,
    d: int,
    dtype: npt.DTypeLike,
    tile: dict[str, int],
    pipe: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, size in tile.items():
        monkeypatch.setitem(TILE, name, size)
    with tt.profile(chip=chip, target=target) as profile:
        for causal, scale, sizes in (
            (True, None, (1, 2, 2, 90, 90)), (True, 0.05, (2, 2, 1, 70, 130)), (False, None, (1, 4, 2, 70, 150)),
        ):  # fmt: skip
            q, k, v, grad_out = tensors(*sizes, d, dtype)
            right = wanted(q, k, v, grad_out, causal=causal, scale=scale)
            out, log_sums = attention_forward(q, k, v, causal=causal, scale=scale)
            check(out, right.out, dtype)
            np.testing.assert_allclose(log_sums, right.log_sums, atol=1e-5)
            counters = profile.launches[-1].counters
            assert counters.value(f"flops.tensor.{pipe}") == work(*sizes, d, causal=causal)
            assert counters.value("global.store.bytes") == q.nbytes + log_sums.nbytes  # never the scores
    assert profile.findings == ()


def test_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the forward pass in float64: the gradients of each array, those of keys summed over the heads that share."""
    for name, size in SMALL.items():
        monkeypatch.setitem(BACKWARD_TILE, name, size)
    with tt.profile(chip="a100", target="sm_80") as profile:
        for causal, sizes in ((True, (1, 4, 2, 70, 90)), (False, (2, 1, 1, 50, 70))):
            q, k, v, grad_out = tensors(*sizes, 64, np.float16)
            right = wanted(q, k, v, grad_out, causal=causal)
            given = grad_out, q, k, v, right.out.astype(np.float16), right.log_sums.astype(np.float32)
            for found, gradient in zip(attention_backward(*given, causal=causal), right.gradients, strict=True):
                check(found, gradient, np.float16)
    assert profile.findings == ()


Q, K = np.zeros((1, 4, 8, 64), np.float16), np.zeros((1, 2, 8, 64), np.float16)
SUMS = np.zeros((1, 4, 8), np.float32)
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "d": (lambda: attention(Q[..., :32].copy(), K[..., :32].copy(), K[..., :32].copy()), "expected d = 64 or 128"),
    "alike": (lambda: attention(Q, K, Q), r"expected q \(batch, heads, n, d\), k \(batch, heads_kv, n"),
    "heads": (lambda: attention(Q[:, :3].copy(), K, K), "expected heads of q to be a multiple"),
    "causal": (lambda: attention(Q, *[K[:, :, :4].copy()] * 2, causal=True), "at least as many keys as queries"),
    "scale": (lambda: attention(Q, K, K, scale=-1.0), "scale is -1.0; expected a finite number above 0"),
    "gaps": (lambda: attention(Q[:, :, ::2], K, K), "attention: q is .* expected rows one behind the other"),
    "type": (lambda: attention(Q.astype(np.float32), K, K), "attention: q is f32"),
    "out": (
        lambda: attention_backward(Q, Q, K, K, K, SUMS), r"out f16\[1, 2, 8, 64\].*; expected .* out \(batch, heads"
    ),
    "sums": (lambda: attention_backward(Q, Q, K, K, Q, SUMS.astype(np.float16)), "log_sums is f16.*expected f32"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_named(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(tt.ArgumentError, match=message):
        call()
