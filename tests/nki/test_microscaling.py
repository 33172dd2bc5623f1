"""MX formats: quantisation by the formula of the manual, products by float64, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log2
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, refused, run, run_kernel, same, tile

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

BF16 = ml_dtypes.bfloat16
FORMATS = {
    "float8_e5m2_x4": (nl.float8_e5m2_x4, ml_dtypes.float8_e5m2, 15),
    "float8_e4m3fn_x4": (nl.float8_e4m3fn_x4, ml_dtypes.float8_e4m3fn, 8),
}


def rows_of_scales(partitions: int) -> list[int]:
    """The partition of the scale of each 8 partitions, in a tile of as many partitions as the data."""
    return [group // 4 * 32 + group % 4 for group in range(partitions // 8)]


def quantised(data: NDArray[Any], element: Any, largest: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:  # noqa: ANN401
    """Numbers [P, N] of 8 bits, and the codes of their scales [P / 8, N / 4]."""
    wide = data.astype(np.float64)
    numbers, codes = np.empty(wide.shape, element), np.empty((wide.shape[0] // 8, wide.shape[1] // 4), np.uint8)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            block = wide[8 * i : 8 * i + 8, 4 * j : 4 * j + 4]
            most = np.abs(block).max()
            exponent = floor(log2(most)) - (largest - 1) if most else -127
            codes[i, j] = exponent + 127
            numbers[8 * i : 8 * i + 8, 4 * j : 4 * j + 4] = (block / 2.0**exponent).astype(element)
    return numbers, codes


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("partitions", [32, 128])
def test_quantize_mx(name: str, partitions: int) -> None:
    packed, element, largest = FORMATS[name]
    generator = np.random.default_rng(7)
    data = (generator.standard_normal((partitions, 16)) * 2.0 ** generator.integers(-20, 20, (partitions, 16))).astype(
        BF16
    )
    data[:8, :4] = 0

    def body(bits: NkiTensor, scales: NkiTensor, a: NkiTensor) -> None:
        made = tile(partitions, 4, dtype=packed)
        nisa.memset(scales, 0)
        nisa.quantize_mx(made, a, scales)
        nisa.tensor_copy(bits, made.view(nl.uint32))

    (bits, scales), findings = run_kernel(
        body, [data], ((partitions, 4), np.uint32), ((partitions, 4), np.uint8), chip="trn3"
    )
    numbers, codes = quantised(data, element, largest)
    same(bits.view(element), numbers)
    same(scales[rows_of_scales(partitions)], codes)
    assert findings == {}


def packed_fp4(numbers: NDArray[Any]) -> NDArray[np.uint16]:
    """[P, N] numbers of 4 bits as [P, N / 4] elements, the first in the lowest bits."""
    nibbles = numbers.view(np.uint8).astype(np.uint16).reshape(numbers.shape[0], -1, 4)
    return (nibbles << (4 * np.arange(4, dtype=np.uint16))).sum(axis=-1).astype(np.uint16)


@pytest.mark.parametrize("name", [*FORMATS, "float4_e2m1fn_x4"])
@pytest.mark.parametrize("partitions", [32, 128])
def test_nc_matmul_mx(name: str, partitions: int) -> None:
    generator = np.random.default_rng(8)
    element = FORMATS[name][1] if name in FORMATS else ml_dtypes.float4_e2m1fn
    packed = FORMATS[name][0] if name in FORMATS else nl.float4_e2m1fn_x4
    bits_type = np.uint32 if name in FORMATS else np.uint16
    inputs: list[NDArray[Any]] = []
    wide: list[NDArray[np.float64]] = []
    for columns in (6, 10):
        numbers = generator.standard_normal((partitions, 4 * columns)).astype(element)
        codes = generator.integers(120, 134, (partitions // 8, columns)).astype(np.uint8)
        scales = np.zeros((partitions, columns), np.uint8)
        scales[rows_of_scales(partitions)] = codes
        bits = numbers.view(np.uint32) if name in FORMATS else packed_fp4(numbers)
        inputs += [bits.astype(bits_type), scales]
        factors = np.repeat(np.repeat(2.0 ** (codes.astype(np.float64) - 127), 8, axis=0), 4, axis=1)
        wide.append((numbers.astype(np.float64) * factors).reshape(partitions, columns, 4))

    def body(out: NkiTensor, a: NkiTensor, a_scale: NkiTensor, b: NkiTensor, b_scale: NkiTensor) -> None:
        product = tile(6, 10, buffer=nl.psum)
        for _ in range(2):
            nisa.nc_matmul_mx(product, a.view(packed), b.view(packed), a_scale, b_scale)
        nisa.tensor_copy(out, product)

    (found,), findings = run_kernel(body, inputs, ((6, 10), F32), chip="trn3")
    expected = np.einsum("kmq,knq->mn", wide[0], wide[1])
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-6, atol=1e-6 * float(np.abs(expected).max()))
    assert findings == {}


def test_scales_of_one_quadrant_may_be_dense() -> None:
    data = np.random.default_rng(9).standard_normal((32, 8)).astype(BF16)

    def body(scales: NkiTensor, a: NkiTensor) -> None:
        nisa.quantize_mx(tile(32, 2, dtype=nl.float8_e5m2_x4), a, scales)

    (found,) = run(body, [data], ((4, 2), np.uint8), chip="trn3")
    same(found, quantised(data, ml_dtypes.float8_e5m2, 15)[1])


def test_scales_of_several_tiles_share_a_quadrant() -> None:
    """Those of the second tile begin 4 partitions behind those of the first."""
    first, second = (np.random.default_rng(seed).standard_normal((64, 8)).astype(BF16) for seed in (9, 10))

    def body(scales: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
        nisa.memset(scales, 0)
        for at, data in enumerate((a, b)):
            nisa.quantize_mx(tile(64, 2, dtype=nl.float8_e5m2_x4), data, scales[4 * at : 64, :])

    (found,) = run(body, [first, second], ((64, 2), np.uint8), chip="trn3")
    for at, data in enumerate((first, second)):
        same(found[np.array(rows_of_scales(64)) + 4 * at], quantised(data, ml_dtypes.float8_e5m2, 15)[1])


E5 = nl.float8_e5m2_x4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: nisa.quantize_mx(tile(32, 2, dtype=E5), tile(32, 8), tile(32, 2, dtype=nl.uint8)),
         "'src' .* float32; expected float16 or bfloat16"),
        (lambda: nisa.quantize_mx(tile(16, 2, dtype=E5), tile(16, 8, dtype=nl.bfloat16), tile(16, 2, dtype=nl.uint8)),
         "16 partitions; expected a multiple of 32"),
        (lambda: nisa.quantize_mx(tile(64, 2, dtype=E5), tile(64, 8, dtype=nl.bfloat16), tile(8, 2, dtype=nl.uint8)),
         r"expected \[36 or more, 2\]: a scale for 8 partitions"),
        (lambda: nisa.quantize_mx(tile(32, 8, dtype=E5), tile(32, 8, dtype=nl.bfloat16), tile(32, 2, dtype=nl.uint8)),
         "a quarter of"),
        (lambda: nisa.nc_matmul_mx(tile(4, 4, buffer=nl.psum), tile(32, 4), tile(32, 4, dtype=E5),
                                   tile(32, 4, dtype=nl.uint8), tile(32, 4, dtype=nl.uint8)),
         "'stationary' .* float32; expected float8_e5m2_x4"),
        (lambda: nisa.nc_matmul_mx(tile(3, 4, buffer=nl.psum), tile(32, 3, dtype=E5), tile(32, 4, dtype=E5),
                                   tile(32, 3, dtype=nl.uint8), tile(32, 4, dtype=nl.uint8)),
         "3 columns; expected an even number"),
        (lambda: nisa.nc_matmul_mx(tile(4, 4, buffer=nl.psum), tile(64, 4, dtype=E5), tile(64, 4, dtype=E5),
                                   tile(64, 4, dtype=nl.uint8), tile(64, 4, dtype=nl.uint8), (0, 0), (32, 128)),
         "more partitions than the tile's 32 rows"),
        (lambda: nisa.tensor_scalar(tile(32, 4, dtype=E5), tile(32, 4, dtype=E5), nl.add, 1.0), "four numbers packed"),
        (lambda: nisa.tensor_copy(tile(32, 4), tile(32, 4, dtype=E5)), "packed elements are not converted"),
        (lambda: nisa.memset(tile(32, 4, dtype=E5), 1.0), "which only 0 fills"),
    ],
)  # fmt: skip
def test_refused(body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message, chip="trn3")


def test_needs_a_later_core() -> None:
    def body() -> None:
        nisa.quantize_mx(tile(32, 2, dtype=E5), tile(32, 8, dtype=nl.bfloat16), tile(32, 2, dtype=nl.uint8))

    refused(body, NkiError, "needs NeuronCore-v4")
