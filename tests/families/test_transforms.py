"""Walsh and Hadamard's transform, the cosine transform of 8 x 8 blocks, and its quantization."""

from __future__ import annotations

import numpy as np
import pytest
from family import Doubles, blocks, module, normal, whole

NAMES = ("cosines<false, 2>", "cosines<true, 2>")


def hadamard(size: int) -> Doubles:
    bits = np.arange(size)
    parity = [[int(a & b).bit_count() % 2 for a in bits.tolist()] for b in bits.tolist()]
    return 1.0 - 2.0 * np.array(parity)


@pytest.mark.parametrize("length", [1, 2, 32, 128])
def test_walsh_in_a_block(length: int) -> None:
    data = normal(length, 3, length)
    wanted = data.astype(np.float64) @ hadamard(length)
    module("transforms", *NAMES)["walsh_in_block"][3, 48, 4 * length](data, length)
    np.testing.assert_allclose(data, wanted, rtol=1e-4, atol=1e-4)


def test_walsh_on_global_memory() -> None:
    data = normal(4, 256)
    wanted = hadamard(256) @ data.astype(np.float64)
    for step in (64, 16, 4, 1):
        module("transforms", *NAMES)["walsh_by_four"][blocks(64, 24), 24](data, step, 256)
    np.testing.assert_allclose(data, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("width", "height"), [(16, 8), (48, 24)])
def test_cosines_and_back(width: int, height: int) -> None:
    image = normal(width, height, width + 9)
    there, back = np.zeros_like(image), np.zeros_like(image)
    how = ((width // 16, height // 8), (16, 8))
    module("transforms", *NAMES)[NAMES[0]][how](image, there, width + 9)
    module("transforms", *NAMES)[NAMES[1]][how](there, back, width + 9)
    frequency, at = np.mgrid[:8, :8]
    basis = np.cos((2 * at + 1) * frequency * np.pi / 16) / 2
    basis[0] = 8**-0.5
    tiles = image[:, :width].astype(np.float64).reshape(height // 8, 8, width // 8, 8)
    wanted = np.einsum("uy,aybx,vx->aubv", basis, tiles, basis).reshape(height, width)
    np.testing.assert_allclose(there[:, :width], wanted, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(back[:, :width], image[:, :width], rtol=1e-5, atol=2e-6)


def test_quantize() -> None:
    coefficients = whole(1, 16, 40, low=-3000, high=3000).astype(np.int16)
    coefficients[0, :3] = -32768, 32767, 0
    steps = whole(2, 8, 8, low=1, high=120).astype(np.int16)
    tiled = np.tile(steps, (2, 5)).astype(np.int64)
    exact = coefficients.astype(np.int64)
    wanted = np.sign(exact) * ((np.abs(exact) + tiled // 2) // tiled) * tiled
    module("transforms", *NAMES)["quantize"][(5, 2), (8, 8)](coefficients, steps, 40)
    assert np.array_equal(coefficients, wanted.astype(np.int16))
