"""Products of matrices, transposition, and the fused GELU(W x + b)."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.core.errors import NkiError
from triptych.execution.profile import Profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.tensors import NkiTensor

PARTITIONS = 128


def as_array(result: NDArray[Any]) -> NDArray[np.float64]:
    return result.astype(np.float64)


@nki.jit
def matmul_current(at: NkiTensor, b: NkiTensor) -> NkiTensor:
    """at.T @ b, K in tiles of 128 that accumulate in PSUM, N in tiles of 512."""
    k, m = at.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in range(0, n, 512):
        width = min(512, n - start)
        acc = nl.ndarray((m, width), dtype=nl.float32, buffer=nl.psum)
        for tile in nl.affine_range(k // PARTITIONS):
            rows = nl.ds(tile * PARTITIONS, PARTITIONS)
            stationary = nl.ndarray((PARTITIONS, m), dtype=at.dtype, buffer=nl.sbuf)
            moving = nl.ndarray((PARTITIONS, width), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=stationary, src=at[rows, :])
            nisa.dma_copy(dst=moving, src=b[rows, start : start + width])
            nisa.nc_matmul(dst=acc, stationary=stationary, moving=moving)
        result = nl.ndarray((m, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out[:, start : start + width], src=result)
    return out


@nki_beta1.jit
def matmul_beta1(at: NkiTensor, b: NkiTensor) -> NkiTensor:
    k, m = at.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    i_k, i_m = nl.mgrid[0:PARTITIONS, 0:m]
    i_kn, i_n = nl.mgrid[0:PARTITIONS, 0:n]
    acc = nl.zeros((m, n), nl.float32, buffer=nl.psum)
    for tile in nl.affine_range(k // PARTITIONS):
        stationary = nl.load(at[tile * PARTITIONS + i_k, i_m])
        moving = nl.load(b[tile * PARTITIONS + i_kn, i_n])
        acc += nisa.nc_matmul(stationary, moving)
    nl.store(out, nl.copy(acc))
    return out


@pytest.mark.parametrize("kernel", [matmul_current, matmul_beta1], ids=["current", "beta1"])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_matmul_accumulates_over_tiles(kernel: Kernel, dtype: type[np.generic], trn2: Profile) -> None:
    generator = np.random.default_rng(21)
    at, b = generator.standard_normal((384, 96)).astype(dtype), generator.standard_normal((384, 500)).astype(dtype)
    expected = at.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(as_array(kernel(at, b)), expected, rtol=1e-5, atol=1e-4)
    launch = trn2.launches[-1]
    kind = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}[np.dtype(dtype).name]
    assert launch.counters[f"flops.tensor.{kind}"].value == 2 * 384 * 96 * 500
    assert launch.counters["instructions.tensor"].value == 3
    assert launch.counters["psum.peak_bytes"].value == 2000
    assert launch.findings == ()


def test_matmul_tiles_n() -> None:
    generator = np.random.default_rng(22)
    at = generator.standard_normal((128, 128)).astype(np.float32)
    b = generator.standard_normal((128, 1100)).astype(np.float32)
    np.testing.assert_allclose(as_array(matmul_current(at, b)), at.T.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3])
def test_matmul_of_8_bit_floats(dtype: type[np.generic], trn2: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    if dtype is ml_dtypes.float8_e4m3fn:
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    generator = np.random.default_rng(23)
    at, b = generator.standard_normal((128, 64)).astype(dtype), generator.standard_normal((128, 32)).astype(dtype)
    expected = at.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(as_array(matmul_current(at, b)), expected, rtol=1e-6, atol=1e-5)
    assert trn2.launches[-1].counters["flops.tensor.fp8"].value == 2 * 128 * 64 * 32


@nki.jit
def gelu_layer(wt: NkiTensor, x: NkiTensor, b: NkiTensor) -> NkiTensor:
    """GELU(W x + b) for one vector: W^T tiles stationary, x moving with N = 1, the bias added by the activation."""
    k, m = wt.shape
    out = nl.ndarray((m, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for row in range(0, m, PARTITIONS):
        acc = nl.ndarray((PARTITIONS, 1), dtype=nl.float32, buffer=nl.psum)
        for start in range(0, k, PARTITIONS):
            weights = nl.load(wt[start : start + PARTITIONS, row : row + PARTITIONS])
            vector = nl.load(x[start : start + PARTITIONS, :])
            nisa.nc_matmul(dst=acc, stationary=weights, moving=vector)
        bias = nl.load(b[row : row + PARTITIONS, :])
        result = nl.ndarray((PARTITIONS, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.gelu, data=acc, bias=bias)
        nl.store(out[row : row + PARTITIONS, :], result)
    return out


def test_fused_gelu(trn2: Profile) -> None:
    generator = np.random.default_rng(24)
    w = generator.standard_normal((256, 384)).astype(np.float32) / 20
    x, b = (
        generator.standard_normal((384, 1)).astype(np.float32),
        generator.standard_normal((256, 1)).astype(np.float32),
    )
    z = w.astype(np.float64) @ x + b
    expected = 0.5 * z * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    np.testing.assert_allclose(as_array(gelu_layer(np.ascontiguousarray(w.T), x, b)), expected, rtol=1e-5, atol=1e-6)
    launch = trn2.launches[-1]
    assert launch.counters["flops.tensor.f32"].value == 2 * 256 * 384
    assert launch.counters["instructions.scalar"].value == 2
    assert launch.counters["flops.scalar"].value == 256 * 2
    assert launch.findings == ()


def test_transposed_input_needs_no_copy() -> None:
    """A strided argument: the steps of its view are the trace's."""
    generator = np.random.default_rng(25)
    w = generator.standard_normal((128, 256)).astype(np.float32)
    x, b = generator.standard_normal((256, 1)).astype(np.float32), np.zeros((128, 1), np.float32)
    copied = as_array(gelu_layer(np.ascontiguousarray(w.T), x, b))
    assert np.array_equal(as_array(gelu_layer(w.T, x, b)), copied)
    reversed_twice = np.ascontiguousarray(w.T[::-1])[::-1]
    assert np.array_equal(as_array(gelu_layer(reversed_twice, x, b)), copied)


@pytest.mark.parametrize("shape", [(128, 128), (100, 37), (32, 32), (1, 128), (33, 2)])
def test_nl_transpose(shape: tuple[int, int]) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(shape[::-1], dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.transpose(nl.load(a)))
        return out

    x = np.random.default_rng(26).standard_normal(shape).astype(np.float32)
    assert np.array_equal(as_array(kernel(x)), x.T)


def test_load_transpose2d() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((64, 200), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(a))
        return out

    x = np.random.default_rng(27).standard_normal((200, 64)).astype(ml_dtypes.bfloat16)
    assert np.array_equal(as_array(kernel(x)), x.T.astype(np.float64))


def test_nc_transpose_in_both_engines() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        data = nl.load(a)
        through_psum = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(through_psum, data, engine=nisa.engine.tensor)
        back = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.sbuf)
        nisa.nc_transpose(back, through_psum, engine=nisa.engine.vector)
        again = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.sbuf)
        nisa.nc_transpose(again, back)
        nl.store(out, again)
        return out

    x = np.random.default_rng(28).standard_normal((32, 32)).astype(np.float32)
    assert np.array_equal(as_array(kernel(x)), x.T)


def test_nl_matmul_transposes_x_only_in_beta1(trn2: Profile) -> None:
    def body(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray((100, 300), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(nl.matmul(nl.load(a), nl.load(b))))
        return out

    generator = np.random.default_rng(29)
    a, b = (
        generator.standard_normal((100, 64)).astype(np.float32),
        generator.standard_normal((64, 300)).astype(np.float32),
    )
    expected = a.astype(np.float64) @ b
    for jit, notices in ((nki_beta1.jit, 0), (nki.jit, 1)):
        np.testing.assert_allclose(as_array(jit(body)(a, b)), expected, rtol=1e-5, atol=1e-5)
        assert len(trn2.launches[-1].findings) == notices


def test_broadcast_over_partitions_is_exact() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((128, 700), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.broadcast_to(nl.load(a), (128, 700)))
        return out

    x = np.random.default_rng(30).standard_normal((1, 700)).astype(np.float32)
    assert np.array_equal(as_array(kernel(x)), np.broadcast_to(x, (128, 700)))


def test_accumulate_flags() -> None:
    """None: the first replaces, the next add; False replaces; True adds."""

    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray((3, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        s, m = nl.load(a), nl.load(b)
        for index, flags in enumerate(((None, None), (None, False), (False, True))):
            acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
            for flag in flags:
                nisa.nc_matmul(acc, s, m, accumulate=flag)
            nl.store(out[index], nl.copy(acc))
        return out

    generator = np.random.default_rng(31)
    a, b = (generator.integers(-3, 4, (16, 8)).astype(np.float32) for _ in range(2))
    once = a.T @ b
    assert np.array_equal(as_array(kernel(a, b)), np.stack([2 * once, once, 2 * once]))


def test_a_consumed_product_cannot_be_used() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        acc = nl.zeros((8, 8), nl.float32, buffer=nl.psum)
        product = nisa.nc_matmul(nl.load(a), nl.load(b))
        acc += product
        nl.store(out, nl.copy(product))
        return out

    with pytest.raises(NkiError, match="was accumulated into another"):
        kernel(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))
