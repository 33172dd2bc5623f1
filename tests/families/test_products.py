"""Products of matrices by tiles of shared memory and of registers."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, normal

TILES = {"by_tiles<float, 16>": 16, "by_tiles<float, 32>": 32, "by_tiles<double, 8>": 8, "by_tiles<int, 16>": 16}
REGISTERS = {"by_registers<2>": 16, "by_registers<4>": 32}
NAMES = (*TILES, *REGISTERS)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 17, 50), (16, 64, 32)])
@pytest.mark.parametrize(("name", "tile"), TILES.items())
def test_by_tiles(name: str, tile: int, m: int, n: int, k: int) -> None:
    kind = {"f": np.float32, "d": np.float64, "i": np.int32}[name[9]]
    a, b = ((normal(seed, *shape) * 9).astype(kind) for seed, shape in ((1, (m, k + 3)), (2, (k, n + 500))))
    c = np.full((m, n + 7), -1, kind)
    grid = (blocks(n, tile), blocks(m, tile))
    report = module("products", *NAMES)[name][grid, (tile, tile)](a, b, c, m, n, k, k + 3, n + 500, n + 7)
    wanted = a[:, :k].astype(np.float64) @ b[:, :n].astype(np.float64)
    np.testing.assert_allclose(
        c[:, :n], wanted, rtol=1e-12 if kind != np.float32 else 2e-5, atol=1e-3 * (kind == np.float32)
    )
    assert (c[:, n:] == -1).all()
    if kind == np.float32:
        steps = blocks(k, tile) * tile
        assert report.counters.value("flops.f32") == 2 * steps * grid[0] * grid[1] * tile**2


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 8), (16, 33, 24), (70, 31, 64)])
@pytest.mark.parametrize(("name", "side"), REGISTERS.items())
def test_by_registers(name: str, side: int, m: int, n: int, k: int) -> None:
    a, b, c = normal(m, m, k), normal(n, k, n), np.zeros((m, n), np.float32)
    module("products", *NAMES)[name][(blocks(n, side), blocks(m, side)), 64](a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)
