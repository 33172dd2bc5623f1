"""Functions of nl that are composed of several instructions, against numpy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from one_kernel import F32, random, refused, run, run_beta1, run_kernel, same, tile

from triptych.core.errors import NkiError
from triptych.core.output import redirecting
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor

BF16 = ml_dtypes.bfloat16
EDGES = np.array(
    [
        [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            0.49999997,
            8388607.5,
            -8388607.5,
            1e9,
            -1e30,
            np.inf,
            -np.inf,
            np.nan,
            1e-40,
        ]
    ],
    F32,
)


def one(function: Callable[..., NkiTensor], **given: object) -> Callable[[NkiTensor, NkiTensor], None]:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, function(a, **given))

    return body


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_rounding(name: str) -> None:
    a = np.concatenate([EDGES, 100 * random(4, 16)])
    expected: Any = getattr(np, name)(a)
    same(run(one(getattr(nl, name)), [a], (a.shape, F32))[0], expected)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometry_of_any_argument(name: str) -> None:
    a = np.concatenate([random(8, 64), 1000 * random(8, 64, seed=81)])
    expected = getattr(np, name)(a.astype(np.float64))
    (found,), findings = run_kernel(one(getattr(nl, name)), [a], (a.shape, F32))
    bound = 1e-5 if name != "tan" else 1e-5 * (1 + expected**2)
    assert np.all(np.abs(found - expected) <= bound)
    assert findings == {}


def test_the_engine_s_sine_goes_on_as_a_cubic() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.activation(out, nl.sin, a)

    (found,), findings = run_kernel(body, [np.array([[9.0, -9.0, 1.0]], F32)], ((1, 3), F32))
    np.testing.assert_allclose(found, [[27.65, -27.65, np.sin(1.0)]], rtol=1e-3)
    assert "'sin' of values whose magnitude is outside" in findings["rangecheck"]


@pytest.mark.parametrize("dtype", [np.uint8, F32, BF16])
def test_shared_identity_matrix(dtype: type[np.generic]) -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        del a
        nl.shared_identity_matrix(64, dtype, dst=out)

    same(run(body, [random(1, 1)], ((64, 64), dtype))[0], np.eye(64))


def test_shared_identity_matrix_of_beta_1() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(a), nl.load(nl.shared_identity_matrix(8, nl.float32))))
        return out

    a = random(8, 8)
    same(run_beta1(kernel, a), a + np.eye(8, dtype=F32))


@pytest.mark.parametrize("grid", [1, 2])
def test_shared_constant(grid: int) -> None:
    """The numbers are in the plan; both programs see the same tensor."""
    constant = random(8, 4, seed=82).astype(BF16)

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((16, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.shared_constant(constant)
        if nl.program_id(0) == 0:
            nl.store(out[0:8, :], nl.load(held))
        if nl.program_id(0) == grid - 1:
            nl.store(out[8:16, :], nl.load(held))
        return out

    found: object = nki.jit(kernel)[grid](random(1, 1))
    same(np.asarray(found), np.concatenate([constant, constant]))


def test_device_print() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a)
        nl.device_print("rows: ", out[0:2, :])

    printed: list[str] = []
    with redirecting(printed.append):
        run(body, [np.arange(12, dtype=F32).reshape(3, 4)], ((3, 4), F32))
    assert "".join(printed) == "rows: [[0. 1. 2. 3.]\n [4. 5. 6. 7.]]\n"


def test_unary_operations_of_the_vector_engine() -> None:
    a = random(16, 8)

    def body(out: NkiTensor, given: NkiTensor) -> None:
        nisa.tensor_scalar(out, given, nl.abs, 0.0, op1=nl.add, operand1=1.0)

    same(run(body, [a], ((16, 8), F32))[0], np.abs(a) + 1)


@pytest.mark.parametrize(("name", "expected"), [("abs_max", np.maximum), ("abs_min", np.minimum)])
def test_magnitudes(name: str, expected: Callable[..., Any]) -> None:
    a, b = random(16, 8), random(16, 8, seed=81)

    def body(out: NkiTensor, x: NkiTensor, y: NkiTensor) -> None:
        nisa.tensor_copy(out, getattr(nl, name)(x, y))

    same(run(body, [a, b], ((16, 8), F32), chip="trn3")[0], expected(np.abs(a), np.abs(b)))


def test_static_cast() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.int32, buffer=nl.shared_hbm)
        nl.store(out, nl.static_cast(nl.load(a), nl.int32))
        assert nl.static_cast(2.75, np.int32) == 2
        return out

    a = 10 * random(8, 8)
    same(run_beta1(kernel, a), np.rint(a))


@pytest.mark.parametrize("dtype", [F32, BF16, ml_dtypes.float8_e5m2])
def test_matmul_transposes_bit_for_bit(dtype: type[np.generic]) -> None:
    """A permutation moves NaN and infinities too."""
    data = random(32, 48).astype(dtype)
    data[3, 4], data[5, 6] = np.nan, np.inf
    order = np.random.default_rng(12).permutation(32)

    def body(out: NkiTensor, a: NkiTensor, moving: NkiTensor) -> None:
        product = tile(48, 32, dtype=dtype, buffer=nl.psum)
        nisa.nc_matmul(product, a, moving, is_transpose=True)
        nisa.tensor_copy(out, product)

    (found,), findings = run_kernel(body, [data, np.eye(32)[:, order].astype(dtype)], ((48, 32), dtype))
    same(found, data.T[:, order])
    assert findings == {}


PERF_MODES: list[object] = [nisa.matmul_perf_mode.double_row, "double_row", "double_row_gen3"]
"""A mode, or its name, as AWS's library has it; Beta 1 has another name."""


@pytest.mark.parametrize("mode", PERF_MODES)
def test_double_row_matmul(mode: object) -> None:
    fp8, language = ml_dtypes.float8_e4m3, cast("Any", nisa)
    a, b = random(128, 2, 16).astype(fp8), random(128, 2, 40, seed=81).astype(fp8)

    def body(out: NkiTensor, x: NkiTensor, y: NkiTensor) -> None:
        product = tile(16, 40, buffer=nl.psum)
        language.nc_matmul(product, x, y, perf_mode=mode)
        nisa.tensor_copy(out, product)

    def returned(x: NkiTensor, y: NkiTensor) -> NkiTensor:
        out = nl.ndarray((16, 40), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(language.nc_matmul(nl.load(x), nl.load(y), perf_mode=mode)))
        return out

    expected = np.einsum("kdm,kdn->mn", a.astype(np.float64), b.astype(np.float64))
    for found in (run(body, [a, b], ((16, 40), F32))[0], run_beta1(returned, a, b)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("mode", [nisa.matmul_perf_mode.none, "none"])
def test_no_fast_mode(mode: object) -> None:
    a, b = random(16, 8).round(), random(16, 24, seed=81).round()

    def body(out: NkiTensor, x: NkiTensor, y: NkiTensor) -> None:
        product = tile(8, 24, buffer=nl.psum)
        cast("Any", nisa).nc_matmul(product, x, y, perf_mode=mode)
        nisa.tensor_copy(out, product)

    same(run(body, [a, b], ((8, 24), F32))[0], a.T @ b)


@pytest.mark.parametrize("mode", ["double", "DOUBLE_ROW", None, 1])
def test_what_is_no_mode(mode: object) -> None:
    def body() -> None:
        operands = tile(16, 8), tile(16, 24)
        cast("Any", nisa).nc_matmul(tile(8, 24, buffer=nl.psum), *operands, perf_mode=mode)

    refused(body, NkiError, rf"perf_mode={mode!r} is no mode")


def test_instructions_have_handles_and_names() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        first = nisa.tensor_copy(out, a, name="first")
        second = nisa.tensor_scalar(out, out, nl.add, 1.0, name="second")
        assert second.depends_on(first) is second

    a = random(8, 8)
    same(run(body, [a], ((8, 8), F32))[0], a + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: nl.shared_constant(np.zeros((2, 2), np.complex64)), "is no dtype of NKI"),
        (lambda: nl.shared_identity_matrix(200), "partition dimension 200"),
        (lambda: nl.device_print(1, tile(8, 8)), "expected a string and a tensor"),  # type: ignore[arg-type]
        (lambda: nisa.dma_copy(nl.shared_constant(np.zeros((8, 8), F32)), tile(8, 8)), "cannot be written"),
        (lambda: nisa.memset(tile(8, 8), 1.0).depends_on(3), "expected what a function of nki.isa returned"),
        (lambda: nl.floor(in_hbm()), "must be in"),
    ],
)
def test_refused(body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message)


def in_hbm() -> NkiTensor:
    return nl.ndarray((8, 8), nl.float32, nl.shared_hbm)


def test_arguments_by_the_names_of_the_other_generation() -> None:
    language: Any = nl

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        zeros, same_shape = language.zeros_like(a=held), language.empty_like(a=held)
        same_shape[...] = language.copy(src=held)
        wide = language.broadcast_to(src=held[0:1, :], shape=(8, 6))
        axis = language.expand_dims(x=held, axis=1)
        for at, one in enumerate((zeros, same_shape, wide, axis.reshape((8, 6)))):
            nl.store(out[at], one)
        language.device_print(prefix="first ", x=held[0:1, 0:1])
        return out

    a = random(8, 6)
    same(run_beta1(kernel, a), np.stack([0 * a, a, np.broadcast_to(a[:1], a.shape), a]))


def test_a_repeated_tile_of_another_dtype() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, nl.broadcast_to(a, (8, 6), dtype=nl.bfloat16))

    a = random(8, 1)
    found = run(body, [a], ((8, 6), nl.bfloat16))[0]
    same(found, np.broadcast_to(a.astype(nl.bfloat16), (8, 6)))


def test_grids_of_products() -> None:
    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
        left, right = nl.gemm_stationary_grid(), nl.gemm_grid()
        product = nl.matmul(nl.load(a[left.p, left.x]), nl.load(b[right.p, right.x]), transpose_x=True)
        nl.store(out[right.p, right.x], product)
        return out

    a, b = random(128, 128).round(), random(128, 512).round()
    same(run_beta1(kernel, a, b), a.T @ b)
