"""Stencils: three dimensions with a queue of planes, finite differences in time, a pitched field."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, normal

MARCHES = {"march<float, 4>": 4, "march<double, 2>": 2}


@pytest.mark.parametrize("size", [(1, 1, 1), (16, 8, 3), (21, 13, 5)])
@pytest.mark.parametrize(("name", "radius"), MARCHES.items())
def test_marching(name: str, radius: int, size: tuple[int, int, int]) -> None:
    nx, ny, nz = size
    kind = np.float32 if "float" in name else np.float64
    field = normal(nx, nz + 2 * radius, ny + 2 * radius, nx + 2 * radius + 3).astype(kind)
    weights, found = normal(radius, radius + 1).astype(kind), np.zeros_like(field)
    pitch, plane = field.shape[2], field.shape[1] * field.shape[2]
    kernel = module("stencils", *MARCHES)[name]
    kernel[(blocks(nx, 16), blocks(ny, 8)), (16, 8)](field, found, weights, nx, ny, nz, pitch, plane)
    inner = tuple(slice(radius, radius + n) for n in (nz, ny, nx))
    exact = field.astype(np.float64)
    wanted = weights[0] * exact
    for axis in range(3):
        for i in range(1, radius + 1):
            wanted = wanted + weights[i] * (np.roll(exact, i, axis) + np.roll(exact, -i, axis))
    np.testing.assert_allclose(found[inner], wanted[inner], rtol=1e-4, atol=2e-5 if kind == np.float32 else 1e-12)
    found[inner] = 0
    assert not found.any()


@pytest.mark.parametrize("count", [2, 3, 100, 259])
def test_fields_that_drive_each_other(count: int) -> None:
    electric, magnetic = normal(count, count), normal(count + 1, count)
    e, h = electric.astype(np.float64), magnetic.astype(np.float64)
    drive = module("stencils", *MARCHES)["drive"]
    for _ in range(5):
        drive[blocks(count, 64), 64](electric, magnetic, count, 0, 0.5)
        drive[blocks(count, 64), 64](magnetic, electric, count, 1, 0.5)
        e[1:-1] += 0.5 * (h[1:-1] - h[:-2])
        h[1:-1] += 0.5 * (e[2:] - e[1:-1])
    np.testing.assert_allclose(electric, e, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(magnetic, h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (33, 2), (40, 9)])
def test_a_pitched_field(width: int, height: int) -> None:
    field, found = normal(width, height, width + 6).astype(np.float64), np.zeros((height, width + 6))
    kernel = module("stencils", *MARCHES)["average"]
    kernel[(blocks(width, 32), blocks(height, 4)), (32, 4)](field, found, width, height, field.strides[0])
    inner = field[:, :width]
    wanted = sum(np.roll(inner, by, axis) for axis in (0, 1) for by in (1, -1)) / 4
    np.testing.assert_allclose(found[:, :width], wanted, rtol=1e-15, atol=1e-15)
