"""Sums and maxima: trees, shuffles, groups of threads, the last block's ticket, all blocks of a grid."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, normal, whole

import triptych as tt

TREES = {"by_tree<int, 1>": 1, "by_tree<int, 256>": 256, "by_tree<float, 64>": 64, "by_tree<double, 1024>": 1024}
SHUFFLES = ("by_shuffle<float>", "by_shuffle<int>", "by_shuffle<double>")
TILES = {"by_tiles<int, 4>": 4, "by_tiles<int, 32>": 32, "by_tiles<float, 16>": 16}
WIDE = {f"by_wide_tiles<{width}>": width for width in (64, 128, 256)}
NAMES = (*TREES, *SHUFFLES, *TILES, *WIDE)


@pytest.mark.parametrize("count", [1, 63, 1000, 4097])
@pytest.mark.parametrize(("name", "threads"), TREES.items())
def test_by_a_tree(name: str, threads: int, count: int) -> None:
    kind = {"int": np.int32, "float": np.float32, "double": np.float64}[name[8:].partition(",")[0]]
    values = whole(count, count).astype(kind)
    sums = np.zeros(3, kind)
    module("reductions", *NAMES)[name][3, threads](values, sums, count)
    assert sums.sum() == values.sum()  # whole numbers: exact in every type
    grid = np.arange(count) // threads % 3
    assert sums.tolist() == [values[grid == block].sum() for block in range(3)]


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 100, 1024])
@pytest.mark.parametrize("name", SHUFFLES)
def test_by_shuffles(name: str, threads: int) -> None:
    values = normal(threads, 2 * threads + 1).astype({"f": np.float32, "i": np.int32, "d": np.float64}[name[11]]) * 1000
    values[0] = values.min()
    maxima = np.zeros(3, values.dtype)
    module("reductions", *NAMES)[name][3, threads](values, maxima, len(values))
    assert maxima.tolist() == [values[block * threads :][:threads].max() for block in range(3)]


@pytest.mark.parametrize(("name", "width"), TILES.items())
def test_by_tiles(name: str, width: int) -> None:
    values = whole(width, 3 * 96).astype(np.float32 if "float" in name else np.int32)
    sums = np.zeros(len(values) // width, values.dtype)
    module("reductions", *NAMES)[name][3, 96](values, sums)
    assert np.array_equal(sums, values.reshape(-1, width).sum(1))


@pytest.mark.parametrize("threads", [1, 32, 45, 256])
def test_by_groups_of_a_branch(threads: int) -> None:
    values = whole(threads, threads)
    values[0] = 1
    sums = np.array([0, -9999], np.int32)
    module("reductions", *NAMES)["by_coalesced_groups"][1, threads](values, sums)
    threes = values % 3 == 0
    assert sums.tolist() == [values[threes].sum(), values[~threes].max()]


@pytest.mark.parametrize(("name", "width"), WIDE.items())
def test_by_tiles_of_several_warps(name: str, width: int) -> None:
    values = whole(width, 256)
    sums = np.zeros(256, np.int32)
    module("reductions", *NAMES)[name][1, 256](values, sums)
    tiles = values.reshape(-1, width).sum(1) + np.arange(256 // width) * 1000000
    assert np.array_equal(sums, np.repeat(tiles, width))


@pytest.mark.parametrize(("count", "grid"), [(1, 1), (1, 9), (5000, 9), (40001, 130)])
def test_in_two_stages_twice(count: int, grid: int) -> None:
    kernel = module("reductions", *NAMES)["in_two_stages"]
    for seed in (1, 2):  # the last block sets the ticket back
        values = np.random.default_rng(seed).standard_normal(count)
        total = np.zeros(1)
        kernel[grid, 128](values, np.full(grid, np.nan), total, count)
        np.testing.assert_allclose(total[0], values.sum(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("count", "grid", "threads"), [(1, 1, 1), (999, 5, 33), (20000, 8, 64)])
def test_across_the_grid(count: int, grid: int, threads: int) -> None:
    values = normal(count, count)
    partial = np.zeros(grid * threads)
    kernel = module("reductions", *NAMES)["across_the_grid"]
    report = kernel.configure(grid=grid, block=threads, cooperative=True)(values, partial, count)
    np.testing.assert_allclose(partial[0], values.sum(dtype=np.float64), rtol=1e-12)
    assert report.grid == (grid, 1, 1)
    assert report.counters.value("instructions.warp") > grid * blocks(threads, 32)


def test_across_the_grid_alike_for_all_workers() -> None:
    values, kernel = normal(5, 1000), module("reductions", *NAMES)["across_the_grid"]
    results: list[tuple[bytes, dict[str, float]]] = []
    for workers in (1, 2, 4, 4):
        partial = np.zeros(6 * 64)
        with tt.scope(workers=workers):
            report = kernel.configure(grid=6, block=64, cooperative=True)(values, partial, 1000)
        results.append((partial.tobytes(), {name: report.counters.value(name) for name in report.counters}))
    assert all(result == results[0] for result in results)
