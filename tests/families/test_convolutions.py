"""Separable convolutions whose weights the host stores in constants."""

from __future__ import annotations

import numpy as np
import pytest
from family import Doubles, Floats, blocks, module, normal

BORDER = np.dtype([("value", np.float32), ("clamp", np.int32)])


def convolved(image: Doubles, weights: Doubles, axis: int, border: float | None) -> Doubles:
    widths = [(4, 4) if one == axis else (0, 0) for one in (0, 1)]
    padded = np.pad(image, widths, "edge") if border is None else np.pad(image, widths, constant_values=border)
    return np.apply_along_axis(np.convolve, axis, padded, weights, "valid")


@pytest.mark.parametrize(("width", "height"), [(1, 1), (32, 8), (37, 19)])
@pytest.mark.parametrize("border", [None, 0.0, 2.5])
def test_separable(width: int, height: int, border: float | None) -> None:
    kernels = module("convolutions")
    image: Floats = normal(width, height, width + 5)
    across, found = np.zeros_like(image), np.zeros_like(image)
    wanted = image[:, :width].astype(np.float64)
    kernels.variables["BORDER"].copy_from(np.array((border or 0, border is None), BORDER))
    before = int(kernels.variables["rows_done"].numpy())
    for axis, name, (tile_width, tile_height), source, target in (
        (1, "along_rows", (32, 4), image, across),
        (0, "along_columns", (16, 8), across, found),
    ):
        weights = normal(axis, 9)  # others for each pass
        kernels.variables["WEIGHTS"].copy_from(weights)
        grid = (blocks(width, tile_width), blocks(height, tile_height))
        kernels[name][grid, (tile_width, tile_height)](source, target, width, height, width + 5)
        wanted = convolved(wanted, weights.astype(np.float64), axis, border)
    np.testing.assert_allclose(found[:, :width], wanted, rtol=1e-4, atol=5e-5)
    assert not found[:, width:].any()
    assert int(kernels.variables["rows_done"].numpy()) - before == height
