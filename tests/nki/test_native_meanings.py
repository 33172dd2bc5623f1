"""Meanings as native code: the bits that numpy's float64 and exact arithmetic give."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from systolic import systolic

from triptych.neuron.isa import compiled
from triptych.neuron.isa.arithmetic import reduce_in_order
from triptych.neuron.isa.compiled.library import address
from triptych.neuron.isa.functions import FUNCTIONS

DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2]
SHAPES = [
    (128, 128, 512), (128, 128, 1), (128, 1, 512), (1, 3, 2), (7, 5, 3), (100, 100, 100), (128, 33, 65), (2, 4, 16),
]  # fmt: skip
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 88.72283, 88.722839, -87.4, -103.97, -104.0, 1e-45, 3e38]
)


def _same_bits(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    """NaN is NaN, whatever its bits."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(
        np.where(np.isnan(found), 0, found.view(np.uint32)), np.where(np.isnan(found), 0, expected.view(np.uint32))
    )


def _normal(random: np.random.Generator, shape: tuple[int, ...], dtype: type[Any]) -> NDArray[Any]:
    return random.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype: type[Any], shape: tuple[int, int, int]) -> None:
    """Row after row, each product exact, each sum rounded."""
    depth, rows, columns = shape
    random = np.random.default_rng(depth * rows + columns)
    a, b = (_normal(random, (depth, one), dtype) for one in (rows, columns))
    _same_bits(compiled.multiply(a, b), systolic(a, b))


def test_products_in_exact_arithmetic() -> None:
    """The witness of the other test is right itself: numbers of all magnitudes, whose sums cancel."""
    random = np.random.default_rng(5)
    a, b = (_of_all_magnitudes(random, (24, 3)) for _ in range(2))
    total = [[Fraction(0)] * 3 for _ in range(3)]
    for one, other in zip(a, b, strict=True):
        for row, left in enumerate(one):
            for column, right in enumerate(other):
                exact = total[row][column] + Fraction(float(left)) * Fraction(float(right))
                total[row][column] = Fraction(_float32(exact))
    expected = np.array([[float(one) for one in row] for row in total], np.float32)
    _same_bits(compiled.multiply(a, b), expected)
    _same_bits(systolic(a, b), expected)


def _of_all_magnitudes(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
    return (random.standard_normal(shape) * 2.0 ** random.integers(-12, 12, shape)).astype(np.float32)


def _float32(exact: Fraction) -> float:
    """The nearest float32, to even: of the neighbours of a first guess the one that is nearest."""
    guess = np.float32(float(exact))
    near = (np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf)))
    return float(min(near, key=lambda one: (abs(Fraction(float(one)) - exact), int(one.view(np.uint32)) & 1)))


def test_products_of_numbers_that_are_none() -> None:
    """Infinities and NaN spread along their row and column alone, whatever fills the last panel."""
    random = np.random.default_rng(6)
    a, b = (random.standard_normal((16, one)).astype(np.float32) for one in (6, 21))
    a[3, 2], b[5, 7], b[9, 20], a[0, 0] = np.inf, np.nan, -np.inf, 0.0
    _same_bits(compiled.multiply(a, b), systolic(a, b))


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_in_place(shape: tuple[int, int, int], adds: bool) -> None:
    """Put or added where the sums lie, whether they fill all panels or not, of two axes or three."""
    depth, rows, columns = shape
    random = np.random.default_rng(sum(shape))
    a, b = (_normal(random, (depth, one), np.float32) for one in (rows, columns))
    for axes in ((rows, columns), (rows, 1, columns)):
        sums = _normal(random, axes, np.float32)
        expected = systolic(a, b).reshape(axes)
        expected = sums + expected if adds else expected
        assert compiled.multiply(a, b, sums, adds=adds) is sums
        _same_bits(sums, expected)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_products_of_parts(dtype: type[Any]) -> None:
    """Operands that lie in parts of tiles: every other column, from right to left, one row for all."""
    whole = _normal(np.random.default_rng(7), (64, 96), dtype)
    parts = [
        whole[:, 3:40],
        whole[::2, ::2][:, :30],
        whole[:32, ::-1],
        whole[31::-1, 5:90],
        np.broadcast_to(whole[:1, :33], (32, 33)),
        np.broadcast_to(whole[:32, :1], (32, 40)),
    ]
    for left in parts:
        for right in parts:
            depth = min(len(left), len(right))
            _same_bits(compiled.multiply(left[:depth], right[:depth]), systolic(left[:depth], right[:depth]))


def _exponential(values: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return np.exp(values.astype(np.float64)).astype(np.float32)


def test_exponential() -> None:
    """What float64 gives, rounded: of bits at random, and where float32 ends."""
    bits = np.random.default_rng(8).integers(0, 1 << 32, (64, 4096), dtype=np.uint64).astype(np.uint32)
    for values in (bits.view(np.float32), np.array([EDGES], np.float32)):
        _same_bits(compiled.exp(values), _exponential(values))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_exponential_of_parts(count: int) -> None:
    """Neighbours that fill no vector, elements that are none, rows that are one."""
    values = np.random.default_rng(count).standard_normal((6, 2 * count)).astype(np.float32)
    for part in (values, values[:, 1:count], values[::2, ::2], np.broadcast_to(values[:1], (5, 2 * count))):
        _same_bits(compiled.exp(part), _exponential(part))


def test_exponential_of_scaled_values() -> None:
    """Scale and bias are rounded one by one, as float32's are; numbers or one for each row."""
    random = np.random.default_rng(10)
    values, scale, bias = (random.standard_normal((9, one)).astype(np.float32) for one in (37, 1, 1))
    values[0, 0], bias[0, 0] = -0.0, np.inf
    for one in (None, scale, np.asarray(np.float32(1.7))):
        for other in (None, bias, np.asarray(np.float32(-0.3))):
            expected = values if one is None else values * one
            expected = expected if other is None else expected + other
            _same_bits(compiled.exp(values, one, other), _exponential(expected))


def test_exponential_in_place() -> None:
    """Where it is to go, also over what it is of; what overlaps otherwise gets an array of its own."""
    memory = np.random.default_rng(11).standard_normal((8, 64)).astype(np.float32)
    apart, expected = np.full((8, 40), np.nan, np.float32), _exponential(memory)
    assert compiled.exp(memory[:, :32], out=apart[:, 8:]).base is apart
    _same_bits(apart[:, 8:], expected[:, :32])
    moved = compiled.exp(memory[:, :40], out=memory[:, 3:43])
    assert not np.may_share_memory(moved, memory)
    _same_bits(moved, expected[:, :40])
    _same_bits(compiled.exp(memory, out=memory), expected)
    _same_bits(memory, expected)


@pytest.mark.parametrize("operation", ["add", "multiply"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (8, 5), (9, 700), (128, 512)])
def test_rows(operation: str, shape: tuple[int, int]) -> None:
    """From the first element to the last; the sign of a sum of zeros is theirs."""
    random = np.random.default_rng(shape[1])
    values = random.uniform(0.9, 1.1, (2 * shape[0], 2 * shape[1])).astype(np.float32)
    values[0] = -0.0
    ufunc: Any = {"add": np.add, "multiply": np.multiply}[operation]
    for part in (values, values[: shape[0], 1 : shape[1] + 1], values[::2, ::2], values.T):
        _same_bits(compiled.reduce_rows(operation, part), ufunc.accumulate(part, axis=1)[:, -1])


def test_large_tiles_take_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits on both sides of the size from which on native code is worthwhile."""
    values = np.random.default_rng(9).standard_normal((128, 256)).astype(np.float32)
    assert values.size >= compiled.WORTHWHILE
    large = [FUNCTIONS["exp"](values), reduce_in_order("add", values), reduce_in_order("multiply", values)]
    monkeypatch.setattr(compiled, "WORTHWHILE", values.size + 1)
    monkeypatch.delattr(compiled, "exp")
    monkeypatch.delattr(compiled, "reduce_rows")
    small = [FUNCTIONS["exp"](values), reduce_in_order("add", values), reduce_in_order("multiply", values)]
    for one, other in zip(large, small, strict=True):
        _same_bits(one, other)


def test_addresses() -> None:
    """What numpy says of where arrays begin: views of parts, from right to left, read-only ones."""
    whole = np.arange(60, dtype=np.float32).reshape(6, 10)
    frozen = np.frombuffer(bytes(16), np.float32)
    for one in (whole, whole[1:, 3:], whole[::-1, ::-2], whole.T, frozen, np.broadcast_to(frozen[:1], (3, 3))):
        assert address(one) == one.ctypes.data
