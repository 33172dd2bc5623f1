"""Layers of a transformer: tables, norms, softmax in one pass, losses, activations, an optimizer, attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from family import Doubles, Floats, blocks, module, normal, whole

import triptych as tt

NAMES = ("gelu<float>", "gelu<__nv_bfloat16>", "attention<16>")


def layers() -> tt.cuda.CudaModule:
    return module("layers", *NAMES)


def softmax_of(rows: Floats | Doubles) -> Doubles:
    exponents = np.exp(rows.astype(np.float64) - rows.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


@pytest.mark.parametrize(("batch", "length", "width"), [(1, 1, 1), (2, 5, 33), (3, 4, 70)])
def test_encoder(batch: int, length: int, width: int) -> None:
    words, places = normal(1, 7, width), normal(2, length, width)
    tokens, out = whole(3, batch, length, low=0, high=7), np.zeros((batch, length, width), np.float32)
    layers()["encode"][batch * length, 64](tokens, words, places, out, length, width)
    assert np.array_equal(out, words[tokens] + places)
    gradient, d_words, d_places = normal(4, *out.shape), np.zeros_like(words), np.zeros_like(places)
    layers()["encode_backward"][batch * length, 32](tokens, d_words, d_places, gradient, length, width)
    wanted = np.zeros(words.shape)
    np.add.at(wanted, tokens, gradient.astype(np.float64))
    np.testing.assert_allclose(d_words, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(d_places, gradient.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (5, 31), (9, 100)])
def test_layer_norm(rows: int, width: int) -> None:
    x, (scale, shift), slope = normal(1, rows, width), normal(2, 2, width), normal(3, rows, width)
    out, d_x = np.zeros((2, rows, width), np.float32)
    (means, deviations), (d_scale, d_shift) = np.zeros((2, rows), np.float32), np.zeros((2, width), np.float32)
    layers()["layer_norm"][blocks(rows, 4), 128](x, scale, shift, out, means, deviations, rows, width)
    backward = layers()["layer_norm_backward"][2, 64, 8 * width]
    backward(slope, x, scale, means, deviations, d_x, d_scale, d_shift, rows, width)
    exact = x.astype(np.float64)
    mean, inverse = exact.mean(1, keepdims=True), (exact.var(1, keepdims=True) + 1e-5) ** -0.5
    normed, inner = (exact - mean) * inverse, slope.astype(np.float64) * scale
    gradient = (inner - inner.mean(1, keepdims=True) - normed * (inner * normed).mean(1, keepdims=True)) * inverse
    for found, wanted in (
        (out, normed * scale + shift), (means, mean[:, 0]), (deviations, inverse[:, 0]),
        (d_x, gradient), (d_scale, (slope * normed).sum(0)), (d_shift, slope.sum(0, dtype=np.float64)),
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("threads", [32, 96])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 33), (2, 500)])
def test_softmax(rows: int, width: int, threads: int) -> None:
    x = normal(width, rows, width) * 30
    x[0, 0] = -np.inf if width > 1 else 5
    wanted = softmax_of(x.astype(np.float64) * 0.5)
    layers()["softmax"][rows, threads](x, x, width, 0.5)  # in place
    np.testing.assert_allclose(x, wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("rows", "width", "padded"), [(1, 1, 1), (4, 50, 64), (2, 200, 224)])
def test_cross_entropy(rows: int, width: int, padded: int) -> None:
    logits, targets, losses = normal(1, rows, padded) * 5, whole(2, rows, low=0, high=width), np.zeros(rows, np.float32)
    likely = softmax_of(logits[:, :width])
    layers()["cross_entropy"][rows, 32](logits, targets, losses, 0.25, width, padded)
    np.testing.assert_allclose(losses, -np.log(likely[np.arange(rows), targets]), rtol=1e-4, atol=2e-6)
    likely[np.arange(rows), targets] -= 1
    np.testing.assert_allclose(logits[:, :width], likely / 4, rtol=1e-4, atol=1e-6)
    assert not logits[:, width:].any()


@pytest.mark.parametrize("count", [1, 130])
def test_gelu(count: int) -> None:
    x = normal(count, count) * 3
    x[-1] = 30
    out, gradient = np.zeros((2, count), np.float32)
    gradient += 2
    half, half_out = x.astype(ml_dtypes.bfloat16), np.zeros(count, ml_dtypes.bfloat16)
    grid = blocks(count, 64)
    layers()["gelu<float>"][grid, 64](x, out, count)
    layers()["gelu<__nv_bfloat16>"][grid, 64](half, half_out, count)
    layers()["gelu_backward"][grid, 64](x, gradient, count)
    root = np.sqrt(2 / np.pi)

    def exact(v: Doubles) -> Doubles:
        return v / 2 * (1 + np.tanh(root * (v + 0.044715 * v**3)))

    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, exact(wide), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(half_out.astype(np.float64), exact(half.astype(np.float64)), rtol=5e-3, atol=1e-6)
    slope = (exact(wide + 1e-5) - exact(wide - 1e-5)) / 2e-5
    np.testing.assert_allclose(gradient, 2 * slope, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 300])
def test_adam(count: int) -> None:
    weights, (first, second) = normal(1, count), np.zeros((2, count), np.float32)
    copy, (w, m, v) = np.zeros(count, ml_dtypes.bfloat16), (weights.astype(np.float64), 0.0, 0.0)
    for step in range(1, 4):
        g = normal(step + 1, count)
        bias = 1 - 0.9**step, 1 - 0.99**step
        layers()["adam"][blocks(count, 128), 128](
            weights, copy, g, first, second, 0.01, 0.9, 0.99, *bias, 1e-8, 0.1, count
        )
        m, v = 0.9 * m + 0.1 * g.astype(np.float64), 0.99 * v + 0.01 * g.astype(np.float64) ** 2
        w = w - 0.01 * (m / bias[0] / (np.sqrt(v / bias[1]) + 1e-8) + 0.1 * w)
    np.testing.assert_allclose(weights, w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first, m, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, v, rtol=1e-4, atol=1e-6)
    assert np.array_equal(copy, weights.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(("heads", "length"), [(1, 1), (2, 33), (1, 70)])
def test_attention(heads: int, length: int) -> None:
    queries, keys, values = normal(length, 3, heads, length, 16)
    out = np.zeros((heads, length, 16), np.float32)
    layers()["attention<16>"][(blocks(length, 32), heads), 32](queries, keys, values, out, length)
    scores = queries.astype(np.float64) @ keys.transpose(0, 2, 1).astype(np.float64) / 4
    scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    np.testing.assert_allclose(out, softmax_of(scores) @ values, rtol=1e-4, atol=1e-5)
