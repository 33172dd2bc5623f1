"""Running sums: of a block, of blocks in three launches, and of a grid in one pass that looks back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from family import blocks, module, whole

import triptych as tt

NAMES = ("blelloch<int, 128>", "blelloch<double, 32>", "add_to_blocks<int>", "add_to_blocks<double>")


@pytest.mark.parametrize("threads", [1, 2, 33, 256])
@pytest.mark.parametrize("missing", [0, 1])
def test_hillis_and_steele(threads: int, missing: int) -> None:
    count = threads - missing
    values, sums = whole(threads, threads), np.full(threads, -1, np.int32)
    module("scans", *NAMES)["hillis_steele"][1, threads, 8 * threads](values, sums, count)
    assert np.array_equal(sums[:count], np.cumsum(values[:count]))
    assert (sums[count:] == -1).all()


@pytest.mark.parametrize("count", [1, 64, 65, 1000, 8191])
@pytest.mark.parametrize(("kind", "threads"), [("int", 128), ("double", 32)])
def test_blelloch(kind: str, threads: int, count: int) -> None:
    values = whole(count, count).astype(np.int32 if kind == "int" else np.float64)
    grid = blocks(count, 2 * threads)
    sums, totals, before, total = np.zeros_like(values), *np.zeros((3, grid), values.dtype)
    kernels = module("scans", *NAMES)
    scan = kernels[f"blelloch<{kind}, {threads}>"]
    scan[grid, threads](values, sums, totals, count)
    if grid <= 2 * threads:
        scan[1, threads](totals, before, total, grid)
    else:
        before[1:] = np.cumsum(totals)[:-1]
    kernels[f"add_to_blocks<{kind}>"][blocks(count, 96), 96](sums, before, 2 * threads, count)
    assert np.array_equal(sums, np.cumsum(values) - values)


@pytest.mark.parametrize("count", [1, 31, 256, 700])
def test_by_shuffles_of_vectors(count: int) -> None:
    values, sums = whole(count, count, 4), np.zeros((count, 4), np.int32)
    module("scans", *NAMES)["by_shuffles"][blocks(count, 256), 256](values, sums, count)
    for start in range(0, count, 256):
        part = slice(start, start + 256)
        assert np.array_equal(sums[part].ravel(), np.cumsum(values[part]))


def test_segments_of_a_warp() -> None:
    values = whole(3, 96)
    expected = np.cumsum(values.reshape(-1, 8), 1).ravel()
    module("scans", *NAMES)["segments_of_eight"][1, 96](values)
    assert np.array_equal(values, expected)


def compositions(maps: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The running composition of x -> scale * x + offset, modulo 2**32."""
    scale, offset, rows = 1, 0, list[tuple[int, int]]()
    for a, b in maps.tolist():
        scale, offset = scale * a % 2**32, (a * offset + b) % 2**32
        rows.append((scale, offset))
    return np.array(rows, np.uint32)


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (1, 128 * 14), (2, 128 * 14 + 5), (2, 129)])
def test_decoupled_look_back(workers: int, count: int) -> None:
    maps = np.random.default_rng(count).integers(0, 2**32, (count, 2), np.uint32)
    maps[:, 0] |= 1  # odd scales: nothing is lost
    tiles = blocks(count, 128)
    found, states, tickets = np.zeros_like(maps), np.zeros(tiles, np.int32), np.zeros(1, np.uint32)
    own, through = np.zeros((2, tiles, 2), np.uint32)
    with tt.scope(workers=workers):
        module("scans", *NAMES)["look_back"][tiles, 128](maps, found, states, own, through, tickets, count)
    assert np.array_equal(found, compositions(maps))
    assert tickets[0] == tiles
    assert (states == 2).all()


@pytest.mark.parametrize("count", [1, 32, 33, 1500, 2600])
def test_look_back_by_warps(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 2**32, count, np.uint32)
    sums, words = np.zeros(count, np.uint32), np.zeros(blocks(count, 32), np.uint64)
    module("scans", *NAMES)["look_back_by_warps"][len(words), 32](values, sums, words, count)
    assert np.array_equal(sums, np.cumsum(values, dtype=np.uint32))
