"""NKI's own kernels, beside what `test_operators.py` runs of them: sizes of their own, and the traffic of tilings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from operator_cases import check_operator

import triptych as tt
from triptych.kernels import nki
from triptych.operators import case, operator

Function = Callable[..., Any]
Matrix = npt.NDArray[Any]
TILINGS: list[Function] = [nki.matmul_tiled, nki.matmul_hoisted, nki.matmul_blocked, nki.matmul_fully_blocked]


def test_attention_of_many_tiles() -> None:
    """Keys of more than a bank of PSUM, the last ones of two tiles hidden by the diagonal."""
    q = np.random.default_rng(0).standard_normal((1, 1, 140, 64)).astype(np.float32)
    k, v = np.random.default_rng(1).standard_normal((2, 1, 1, 640, 64)).astype(np.float32)
    scores: Matrix = (q @ k.swapaxes(2, 3)).astype(np.float64) / 8
    rows, columns = np.indices((140, 640))
    scores[..., columns > rows + 500] = -np.inf
    weights = np.exp(scores - scores.max(3, keepdims=True))
    out, log_sums = nki.attention_forward(q, k, v, causal=True)
    np.testing.assert_allclose(out, weights @ v / weights.sum(3, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(log_sums, np.log2(np.exp(scores).sum(3)), atol=1e-5)


@pytest.mark.parametrize("tiling", TILINGS)
def test_tilings(tiling: Function) -> None:
    def product(a: Matrix, b: Matrix) -> Matrix:
        return tiling(np.ascontiguousarray(a.T), b)

    check_operator(product, "matmul", "f32", "ragged", chip="trn2")


def test_the_traffic_of_tilings() -> None:
    """How often a tiling brings A (640 × 256) and B (256 × 600) follows from its blocks."""
    a, b = np.zeros((256, 640), ml_dtypes.bfloat16), np.zeros((256, 600), ml_dtypes.bfloat16)
    for tiling, times_a, times_b in zip(TILINGS, (2, 1, 1, 1), (5, 5, 2, 1), strict=True):
        with tt.profile(chip="trn2") as profile:
            tiling(a, b)
        counters = profile.launches[0].counters
        assert counters.value("dma.load.bytes") == times_a * a.nbytes + times_b * b.nbytes
        assert counters.value("dma.store.bytes") == 640 * 600 * 2
        assert counters.value("flops.tensor.bf16") == 2 * 640 * 600 * 256


def test_blocks_of_k_are_summed_up_in_f32() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 40, 1200)).astype(ml_dtypes.bfloat16)
    expected = a.astype(np.float64) @ b.T.astype(np.float64)
    c = nki.matmul_fully_blocked(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T))
    assert (abs(c.astype(np.float64) - expected) <= 2.0**-8 * abs(expected) + 1e-3).all()


@pytest.mark.parametrize("lengths", [(40, 300), (130, 130), (77, 700)], ids=str)
def test_attention_that_streams_and_hides(lengths: tuple[int, int]) -> None:
    """Blocks of queries and tiles of keys on either side of the diagonal, and across it."""
    (n, n_kv), d = lengths, 32
    given = {"batch": 1, "heads": 2, "heads_kv": 1, "n": n, "n_kv": n_kv, "d": d, "causal": 1}
    one = case(operator("attention"), given, "f32", "apart")
    with tt.profile(chip="trn2") as profile:
        out = nki.attention_streamed(*one.inputs.values(), causal=True, queries=32)
    assert one.error((np.asarray(out),)) <= 1
    assert profile.findings == ()


def test_an_experts_matrix_is_never_whole_in_sbuf() -> None:
    given = {"tokens": 5, "d": 512, "experts": 1, "n": 2048, "top_k": 1}
    one = case(operator("moe_matmul"), given, "f32", "normal")
    with tt.profile(chip="trn2") as profile:
        y = nki.moe_matmul(*one.inputs.values())
    assert one.error((np.asarray(y),)) <= 1
    assert profile.findings == ()
    rows_of_a_partition = 512 / 128
    assert profile.launches[0].counters.value("sbuf.peak_bytes") < rows_of_a_partition * 2048 * 4


def test_a_product_of_8_bit_floats_needs_a_later_chip() -> None:
    tile, scales = np.zeros((32, 160), ml_dtypes.float8_e4m3fn), np.zeros(32, np.float32)
    with tt.profile(chip="trn2"), pytest.raises(tt.NkiError, match="float8_e4m3fn needs NeuronCore-v4"):
        nki.quantised_matmul(tile, tile, scales, scales)


def test_a_copy_and_means_of_windows() -> None:
    x = np.random.default_rng(0).standard_normal((130, 6, 9)).astype(np.float32)
    np.testing.assert_array_equal(nki.tensor_copy(x), x)
    means = x.reshape(130, 2, 3, 3, 3).mean((2, 4))
    np.testing.assert_allclose(nki.average_pool(x, window=3), means, atol=1e-6)
    with pytest.raises(AssertionError, match="pictures of 6 × 9 have no whole windows of 2"):
        nki.average_pool(x)


def test_what_does_not_fit() -> None:
    with pytest.raises(AssertionError, match=r"got a float32\[3, 4\], b float32\[4, 3\]; expected one shape"):
        nki.vec_add(np.zeros((3, 4), np.float32), np.zeros((4, 3), np.float32))
    with pytest.raises(AssertionError, match="a has 4 columns, b 3 rows"):
        nki.matmul(np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32))
    with pytest.raises(tt.NkiLimitError, match="SBUF"):
        nki.softmax(np.zeros((1, 60_000), np.float32))
