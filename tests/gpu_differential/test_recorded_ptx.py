"""The PTX files of real compilers: both executors leave the same bytes and the same counters behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from both import Array, run_both

FOLDER = Path(__file__).parents[1] / "data" / "ptx"


@pytest.fixture(params=["80", "90"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def text_of(name: str, target: str = "80") -> str:
    return (FOLDER / f"{name}.{target}.ptx").read_text()


def floats(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_vec_add() -> None:
    a, b = floats(0, 700), floats(1, 700)
    outcome = run_both(text_of("vec_add"), "vec_add", 3, 256, a, b, np.zeros_like(a), np.int32(700))
    np.testing.assert_array_equal(outcome.arrays[2], a + b)
    assert outcome.counters["flops.f32"] == 700


def test_sgemm() -> None:
    a, b = floats(0, 10, 18), floats(1, 18, 17)
    sizes = (np.int32(10), np.int32(17), np.int32(18))
    text = text_of("sgemm_tiled")
    outcome = run_both(text, "sgemm_tiled", (2, 1), (16, 16), a, b, np.zeros((10, 17), np.float32), *sizes)
    np.testing.assert_allclose(outcome.arrays[2], a @ b, rtol=1e-4, atol=1e-5)


def test_transpose_with_dynamic_shared_memory() -> None:
    source = np.arange(40.0 * 70).reshape(40, 70)
    text, sizes = text_of("transpose"), (np.int32(40), np.int32(70))
    outcome = run_both(text, "transpose", (3, 2), (32, 4), source, np.zeros((70, 40)), *sizes, shared_bytes=32 * 33 * 8)
    np.testing.assert_array_equal(outcome.arrays[1], source.T)
    assert outcome.counters["shared.load.bank_conflicts"] > 0


def test_reduction_with_shuffles_and_an_atomic() -> None:
    values = floats(2, 2000)
    outcome = run_both(text_of("reduction"), "block_sum", 3, 128, values, np.zeros(1, np.float32), np.int32(2000))
    np.testing.assert_allclose(outcome.arrays[1], values.sum(), rtol=1e-4)


def test_histogram_with_ballots_in_a_loop() -> None:
    keys = np.random.default_rng(3).integers(0, 1 << 32, 300, np.uint32)
    run_both(text_of("reduction"), "histogram", 1, 96, keys, np.zeros(256, np.uint32), np.int32(300))


def test_switch_with_module_variables() -> None:
    which = np.random.default_rng(4).integers(-1, 10, 200, np.int32)
    which[1::2][which[1::2] == 6] = 7  # there it would write through a null pointer
    values = np.abs(floats(5, 200)) + 1
    run_both(text_of("switch") + "\n// its own module variables\n", "choose", 2, 128, which, values, np.int32(200))


@pytest.mark.parametrize(
    ("name", "kind"), [("_ZN5tools5scaleIfLi4EEEvPT_S1_i", "f4"), ("_ZN5tools5scaleIdLi3EEEvPT_S1_i", "f8")]
)
def test_local_arrays(name: str, kind: str) -> None:
    values = np.arange(100, dtype=kind)
    run_both(text_of("templates"), name, 2, 32, values, np.dtype(kind).type(2.5), np.int32(97))


def test_inline_assembly_that_waits_at_an_mbarrier(target: str) -> None:
    flag, output = np.zeros(2, np.uint32), np.zeros(96, np.uint32)
    outcome = run_both(text_of("inline_assembly", target), "wait_for", 1, 96, flag, output)
    np.testing.assert_array_equal(outcome.arrays[0], [32, 0x7F])
    np.testing.assert_array_equal(outcome.arrays[1], np.arange(96) % 32)


SCRATCH = (np.uint64(0), np.uint64(0))
"""Triton's two hidden pointers."""


def test_triton_add(target: str) -> None:
    a, b = floats(6, 500), floats(7, 500)
    outcome = run_both(text_of("triton_add", target), "add", 2, 128, a, b, np.zeros_like(a), np.int32(500), *SCRATCH)
    np.testing.assert_array_equal(outcome.arrays[2], a + b)


def test_triton_softmax(target: str) -> None:
    values, sizes = floats(8, 3, 300), (np.int32(300), np.int32(300))
    text = text_of("triton_softmax", target)
    outcome = run_both(text, "softmax", 3, 128, values, np.zeros_like(values), *sizes, *SCRATCH, shared_bytes=64)
    power = np.exp(values - values.max(axis=1, keepdims=True))
    np.testing.assert_allclose(outcome.arrays[1], power / power.sum(axis=1, keepdims=True), rtol=1e-5)


def test_triton_layer_norm(target: str) -> None:
    values, weight, bias = floats(9, 2, 300), floats(10, 300), floats(11, 300)
    scalars = (np.int32(300), np.int32(300), np.float32(1e-5), *SCRATCH)
    text, out = text_of("triton_layer_norm", target), np.zeros_like(values)
    outcome = run_both(text, "layer_norm", 2, 128, values, weight, bias, out, *scalars, shared_bytes=2048)
    expected = (values - values.mean(1, keepdims=True)) / np.sqrt(values.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(outcome.arrays[3], expected, rtol=1e-4, atol=1e-5)


def test_triton_dropout(target: str) -> None:
    values = floats(12, 400)
    scalars = (np.int32(400), np.float32(0.25), np.int32(1234), *SCRATCH)
    outcome = run_both(text_of("triton_dropout", target), "dropout", 2, 128, values, np.zeros_like(values), *scalars)
    kept = outcome.arrays[1] != 0
    assert 0.6 < kept.mean() < 0.9


def test_triton_matmul_on_tensor_cores(target: str) -> None:
    a, b = floats(13, 40, 50).astype(np.float16), floats(14, 50, 37).astype(np.float16)
    sizes, text = (np.int32(40), np.int32(37), np.int32(50)), text_of("triton_matmul", target)
    out = np.zeros((40, 37), np.float16)
    outcome = run_both(text, "matmul", (2, 2), 128, a, b, out, *sizes, *SCRATCH, shared_bytes=8192)
    np.testing.assert_allclose(outcome.arrays[2], a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-3)
    assert outcome.counters["flops.tensor.f16"] == 2 * 64**3
