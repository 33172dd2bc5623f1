"""Element-wise functions of nl against float64 references that share no code with the machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.tensors import NkiTensor

Doubles = NDArray[np.float64]
Reference = Callable[[Doubles], Doubles]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Doubles) -> Doubles:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Reference] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "square": lambda x: x * x,
    "negative": lambda x: -x,
    "abs": np.abs,
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu_apprx_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "silu": lambda x: x * _sigmoid(x),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "erf": _erf,
    "sign": np.sign,
    "copy": lambda x: x,
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
}
POSITIVE: dict[str, Reference] = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
DERIVATIVES = {
    "gelu_dx": "gelu",
    "silu_dx": "silu",
    "erf_dx": "erf",
    "gelu_apprx_sigmoid_dx": "gelu_apprx_sigmoid",
}
BINARY: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": lambda x, y: (x < y).astype(np.float64),
    "greater_equal": lambda x, y: (x >= y).astype(np.float64),
    "equal": lambda x, y: (x == y).astype(np.float64),
}


def unary_kernel(name: str) -> Kernel:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, getattr(nl, name)(nl.load(a)))
        return out

    return kernel


def binary_kernel(name: str, swap: bool = False, number: float | None = None) -> Kernel:
    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor | None = None) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        left = nl.load(a)
        right = number if number is not None else nl.load(b)
        operands = (right, left) if swap else (left, right)
        nl.store(out, getattr(nl, name)(*operands))
        return out

    return kernel


def run(kernel: Kernel, *arrays: object) -> NDArray[np.float64]:
    result: NDArray[Any] = kernel(*arrays)
    return result.astype(np.float64)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    x = np.random.default_rng(7).uniform(-3.1, 3.1, (128, 40)).astype(np.float32)
    np.testing.assert_allclose(run(unary_kernel(name), x), UNARY[name](x.astype(np.float64)), rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive(name: str) -> None:
    x = np.random.default_rng(8).uniform(1e-6, 1e6, (64, 33)).astype(np.float32)
    np.testing.assert_allclose(run(unary_kernel(name), x), POSITIVE[name](x.astype(np.float64)), rtol=3e-7)


@pytest.mark.parametrize(("name", "function"), DERIVATIVES.items())
def test_derivatives(name: str, function: str) -> None:
    x = np.random.default_rng(9).uniform(-3, 3, (16, 16)).astype(np.float32)
    wide, step = x.astype(np.float64), 1e-5
    expected = (UNARY[function](wide + step) - UNARY[function](wide - step)) / (2 * step)
    np.testing.assert_allclose(run(unary_kernel(name), x), expected, rtol=1e-6, atol=1e-6)


def test_edge_values() -> None:
    x = np.array([[np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-40]], np.float32)
    with np.errstate(all="ignore"):
        assert np.array_equal(run(unary_kernel("exp"), x), np.exp(x).astype(np.float64), equal_nan=True)
        assert np.array_equal(run(unary_kernel("relu"), x)[0, 3:], np.array([0, 0, 3e38, 0, 1e-40], np.float32))
    gelu = run(unary_kernel("gelu"), x)[0]
    assert gelu[0] == np.inf
    assert gelu[1] == 0
    assert np.isnan(gelu[2])


@pytest.mark.parametrize("name", BINARY)
def test_two_tiles(name: str) -> None:
    generator = np.random.default_rng(10)
    a, b = (generator.integers(-4, 5, (128, 70)).astype(np.float32) for _ in range(2))
    expected = BINARY[name](a.astype(np.float64), b.astype(np.float64))
    assert np.array_equal(run(binary_kernel(name), a, b), expected)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("swap", [False, True])
def test_tile_and_number(name: str, swap: bool) -> None:
    a = np.random.default_rng(11).integers(-4, 5, (100, 9)).astype(np.float32)
    wide = a.astype(np.float64)
    number = np.full_like(wide, 2.5)
    expected = BINARY[name](number, wide) if swap else BINARY[name](wide, number)
    assert np.array_equal(run(binary_kernel(name, swap, 2.5), a), expected)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_tile_and_column(swap: bool, dtype: type[np.generic]) -> None:
    generator = np.random.default_rng(12)
    a = generator.integers(-8, 9, (128, 5)).astype(dtype)
    column = generator.integers(-8, 9, (128, 1)).astype(dtype)
    expected = a.astype(np.float64) - column.astype(np.float64)
    kernel = nki_beta1.jit(binary_kernel("subtract", swap).function)  # `import nki` does not broadcast
    assert np.array_equal(run(kernel, a, column), -expected if swap else expected)


def test_free_axes_broadcast() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(a), nl.load(b)))
        return out

    generator = np.random.default_rng(13)
    a = generator.standard_normal((16, 3, 4)).astype(np.float32)
    b = generator.standard_normal((16, 3, 1)).astype(np.float32)
    assert np.array_equal(run(kernel, a, b), (a + b).astype(np.float64))


def test_bfloat16_rounds_once() -> None:
    generator = np.random.default_rng(14)
    a, b = (generator.standard_normal((128, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    expected = (a.astype(np.float32) * b.astype(np.float32)).astype(ml_dtypes.bfloat16)
    result = binary_kernel("multiply")(a, b)
    assert result.dtype == ml_dtypes.bfloat16
    assert np.array_equal(result, expected)


def test_integers_of_32_bits_are_exact() -> None:
    generator = np.random.default_rng(15)
    a, b = (generator.integers(-(2**30), 2**30, (128, 17), dtype=np.int32) for _ in range(2))
    result = binary_kernel("add")(a, b)
    assert np.array_equal(result, a + b)


def test_bit_operations() -> None:
    a = np.random.default_rng(16).integers(0, 2**32, (32, 8), dtype=np.uint32)
    assert np.array_equal(binary_kernel("left_shift", number=3)(a), a << np.uint32(3))
    assert np.array_equal(binary_kernel("bitwise_and", number=255)(a), a & np.uint32(255))
    assert np.array_equal(unary_kernel("invert")(a), ~a)


def test_float_to_integer_rounds_and_saturates() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((1, 7), dtype=nl.int8, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(nl.load(a), dtype=nl.int8))
        return out

    x = np.array([[0.5, 1.5, 2.5, -0.5, 300.0, -300.0, np.nan]], np.float32)
    assert np.array_equal(kernel(x), np.array([[0, 2, 2, 0, 127, -128, 0]], np.int8))


@pytest.mark.parametrize("numbers", [(False, False), (True, False), (False, True), (True, True)])
def test_where(numbers: tuple[bool, bool]) -> None:
    @nki.jit
    def kernel(c: NkiTensor, a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        first = 7.0 if numbers[0] else nl.load(a)
        second = -7.0 if numbers[1] else nl.load(b)
        nl.store(out, nl.where(nl.load(c), first, second))
        return out

    generator = np.random.default_rng(17)
    c = generator.integers(0, 2, (128, 12)).astype(np.float32)
    a, b = (generator.standard_normal((128, 12)).astype(np.float32) for _ in range(2))
    expected = np.where(c != 0, np.float32(7) if numbers[0] else a, np.float32(-7) if numbers[1] else b)
    assert np.array_equal(run(kernel, c, a, b), expected.astype(np.float64))


def test_beta1_divides_by_a_reciprocal() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a) / nl.load(b) + 1.0 / nl.load(b) - nl.load(a) / 4)
        return out

    generator = np.random.default_rng(18)
    a, b = (generator.uniform(1, 2, (64, 64)).astype(np.float32) for _ in range(2))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_allclose(run(kernel, a, b), wide_a / wide_b + 1 / wide_b - wide_a / 4, rtol=1e-6, atol=1e-6)


REDUCTIONS: dict[str, Callable[..., Doubles]] = {
    "sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "prod": np.prod, "var": np.var,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [2, -1, (1, 2), [1, 2]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name: str, axis: int | tuple[int, ...] | list[int], keepdims: bool) -> None:
    places = axis if isinstance(axis, int) else tuple(axis)
    x = np.random.default_rng(19).uniform(0.5, 1.5, (128, 6, 10)).astype(np.float32)
    expected = np.asarray(REDUCTIONS[name](x.astype(np.float64), axis=places, keepdims=keepdims))
    shape = expected.shape if expected.ndim > 1 else (*expected.shape, 1)

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, getattr(nl, name)(nl.load(a), axis=axis, keepdims=keepdims))
        return out

    np.testing.assert_allclose(run(kernel, x), expected.reshape(shape), rtol=2e-5)


def test_softmax_and_rms_norm() -> None:
    @nki.jit
    def kernel(a: NkiTensor, w: NkiTensor) -> object:
        soft = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        norm = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        data = nl.load(a)
        nl.store(soft, nl.softmax(data))
        nl.store(norm, nl.rms_norm(data, nl.load(w), axis=1, n=200))
        return soft, norm

    generator = np.random.default_rng(20)
    x, w = generator.standard_normal((128, 200)).astype(np.float32), generator.random((1, 200)).astype(np.float32)
    result = kernel(x, w)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    np.testing.assert_allclose(result[0], powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
    root = np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(result[1], wide / root * w, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("operation", "dtype", "immediate", "bits"),
    [
        ("bitwise_and", np.int32, 0xFFFF0000, 0xFFFF0000),
        ("bitwise_or", np.int32, 0xFFFFFFFF, 0xFFFFFFFF),
        ("bitwise_xor", np.int32, -(1 << 31), 1 << 31),
        ("bitwise_and", np.uint32, -256, 0xFFFFFF00),
        ("bitwise_and", np.uint8, 0xF0F, 0x0F),
        ("bitwise_or", np.int8, 0x80, 0x80),
        ("bitwise_xor", np.uint16, -1, 0xFFFF),
    ],
)
def test_bits_of_an_immediate(operation: str, dtype: type[np.integer[Any]], immediate: int, bits: int) -> None:
    """As many low bits as the tile's dtype has, whichever sign the number and the dtype have."""

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, getattr(nl, operation)(nl.load(a), immediate))
        return out

    limits = np.iinfo(dtype)
    a = np.random.default_rng(43).integers(limits.min, limits.max, (16, 32), dtype, endpoint=True)
    unsigned = np.dtype(f"u{limits.bits // 8}")
    expected = getattr(np, operation)(a.view(unsigned), unsigned.type(bits))
    assert np.array_equal(kernel(a).view(unsigned), expected)


@pytest.mark.parametrize("amount", [0, 7, 8, 255, 256, 1 << 31, (1 << 32) - 1])
def test_shifts_by_any_amount(amount: int) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        right = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(right, nl.right_shift(nl.load(a), amount))
        nl.store(left, nl.left_shift(nl.load(a), amount))
        return right, left

    a = np.arange(256, dtype=np.uint8).reshape(16, 16)
    right, left = kernel(a)
    wide = a.astype(np.uint64)
    assert np.array_equal(right, wide >> min(amount, 8))
    assert np.array_equal(left, (wide << min(amount, 8)) & 0xFF)


def test_bits_of_both_signs() -> None:
    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.bitwise_and(nl.load(a), nl.load(b), dtype=a.dtype))
        return out

    a = np.array([[-1, -2, 5, 1 << 30]], np.int32)
    b = np.array([[0xFFFFFFFF, 0xFFFF0000, 4, 0xC0000000]], np.uint32)
    assert kernel(a, b).tolist() == [[-1, -65536, 4, 1 << 30]]


@pytest.mark.parametrize(
    ("source", "target"), [("int32", "uint32"), ("uint32", "int32"), ("int8", "uint8"), ("uint16", "int16")]
)
def test_bits_into_a_tile_of_the_other_signedness(source: str, target: str) -> None:
    """A bit operation's result is no number: nothing saturates."""

    @nki.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, ...]:
        dtype = getattr(nl, target)
        tile = nl.load(a)
        results = (
            nl.invert(tile, dtype=dtype), nl.bitwise_or(tile, tile, dtype=dtype), nl.left_shift(tile, 1, dtype=dtype),
        )  # fmt: skip
        outs = tuple(nl.ndarray(a.shape, dtype=dtype, buffer=nl.shared_hbm) for _ in results)
        for out, result in zip(outs, results, strict=True):
            nl.store(out, result)
        return outs

    limits = np.iinfo(source)
    a = np.array([[limits.min, limits.max, 0, 1, limits.max // 2 + 1, limits.max - 1]], source)
    unsigned = a.view(f"u{a.itemsize}")
    inverted, same, shifted = (result.view(unsigned.dtype) for result in kernel(a))
    assert np.array_equal(inverted, ~unsigned)
    assert np.array_equal(same, unsigned)
    assert np.array_equal(shifted, unsigned << unsigned.dtype.type(1))
