"""Transposes: plain, by tiles with and without padding, along diagonals, in place; with what they cost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from family import blocks, module, normal

TILES = {
    "by_tiles<float, 32, 8, 0, false>": (32, 8),
    "by_tiles<float, 32, 8, 1, false>": (32, 8),
    "by_tiles<float, 32, 8, 1, true>": (32, 8),
    "by_tiles<double, 16, 4, 1, false>": (16, 4),
    "by_tiles<unsigned char, 16, 16, 4, true>": (16, 16),
}
NAMES = (*TILES, "plainly<double>", "plainly<unsigned char>")
KINDS = {"float": np.float32, "double": np.float64, "unsigned char": np.uint8}


def kind_of(name: str) -> npt.DTypeLike:
    return KINDS[name.partition("<")[2].rstrip(">").partition(",")[0]]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 70), (33, 31), (64, 96)])
@pytest.mark.parametrize("name", NAMES)
def test_transpose(name: str, width: int, height: int) -> None:
    tile, rows = TILES.get(name, (16, 8))
    matrix = (normal(width, height, width + 5) * 50).clip(0, 255).astype(kind_of(name))
    found = np.zeros((width, height + 1001), matrix.dtype)  # long rows
    grid = (blocks(width, tile), blocks(height, tile if name in TILES else rows))
    module("transposes", *NAMES)[name][grid, (tile, rows)](matrix, found, width, height, width + 5, height + 1001)
    assert np.array_equal(found[:, :height], matrix[:, :width].T)
    assert not found[:, height:].any()


@pytest.mark.parametrize("size", [1, 16, 45])
def test_in_place(size: int) -> None:
    matrix = normal(size, size, size)
    wanted = matrix.T.copy()
    module("transposes", *NAMES)["in_place"][(blocks(size, 16),) * 2, (16, 16)](matrix, size)
    assert np.array_equal(matrix, wanted)


def test_padding_avoids_bank_conflicts() -> None:
    matrix, found = normal(1, 64, 64), np.zeros((64, 64), np.float32)
    conflicts: list[float] = []
    for name in list(TILES)[:2]:
        report = module("transposes", *NAMES)[name][(2, 2), (32, 8)](matrix, found, 64, 64, 64, 64)
        assert report.counters.value("global.store.sectors") == 64 * 64 * 4 / 32
        conflicts.append(report.counters.value("shared.load.bank_conflicts"))
    assert conflicts == [4 * 32 * 31, 0]  # each of 32 loads of a tile reads one bank 32 times
