"""CUB's primitives of blocks and warps, from the headers that NVRTC's package brings."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, whole

RAKING, COMMUTATIVE, WARPS = (
    f"cub::BLOCK_REDUCE_{how}" for how in ("RAKING", "RAKING_COMMUTATIVE_ONLY", "WARP_REDUCTIONS")
)
REDUCTIONS = {
    f"reduce<float, 96, {RAKING}, Plus>": (96, np.sum),
    f"reduce<float, 64, {COMMUTATIVE}, Largest>": (64, np.max),
    f"reduce<float, 80, {WARPS}, Plus>": (80, np.sum),
}
SCANS = tuple(f"scan<cub::BLOCK_SCAN_{how}>" for how in ("RAKING", "WARP_SCANS"))
SORTS = ("sort<float, 4, true>", "sort<unsigned, 5, false>")
COPIES = tuple(
    f"copy<{kind}, cub::BLOCK_LOAD_{how}, cub::BLOCK_STORE_{how}>"
    for kind, how in (("int", "TRANSPOSE"), ("double", "WARP_TRANSPOSE"), ("int", "STRIPED"))
)
LANES = {"warps<int, 32>": 32, "warps<float, 16>": 16, "warps<int, 16>": 16}
NAMES = (*REDUCTIONS, *SCANS, *SORTS, *COPIES, *LANES)


@pytest.mark.parametrize(("name", "of"), REDUCTIONS.items())
def test_reductions(name: str, of: tuple[int, np.ufunc]) -> None:
    threads, function = of
    values, out = whole(threads, 2, threads).astype(np.float32), np.zeros(2, np.float32)
    for valid in (1, 33, threads):
        module("cub_blocks", *NAMES)[name][2, threads](values, out, valid)
        assert out.tolist() == [function(row[:valid]) for row in values]


@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str) -> None:
    maps, out, totals = whole(1, 2, 128, 2), np.zeros((2, 128, 2), np.int32), np.zeros((2, 2), np.int32)
    module("cub_blocks", *NAMES)[name][2, 64](maps, out, totals)
    for block in range(2):
        scale, offset = 1, 0
        for at in range(128):
            assert (out[block, at].view(np.uint32) == (scale % 2**32, offset % 2**32)).all()
            a, b = map(int, maps[block, at])
            scale, offset = scale * a, a * offset + b
        assert (totals[block].view(np.uint32) == (scale % 2**32, offset % 2**32)).all()


def test_sort_of_floats_down() -> None:
    keys = whole(2, 2, 128, low=-60, high=60).astype(np.float32)
    keys[:, :6] = [0, -0.0, np.inf, -np.inf, 1e-45, -1e-45]
    given, values = keys.copy(), np.tile(np.arange(128, dtype=np.int32), (2, 1))
    module("cub_blocks", *NAMES)[SORTS[0]][2, 64](keys, values, 0, 32)
    order = np.argsort(-given, 1, kind="stable")  # zeros of both signs are equal
    assert np.array_equal(values, order)
    assert np.array_equal(keys, np.take_along_axis(given, order, 1))


@pytest.mark.parametrize(("begin", "end"), [(0, 32), (7, 18), (31, 32)])
def test_sort_by_some_bits(begin: int, end: int) -> None:
    keys = np.random.default_rng(3).integers(0, 2**32, 128, np.uint32)
    given, values = keys.copy(), np.arange(128, dtype=np.int32)
    module("cub_blocks", *NAMES)[SORTS[1]][1, 64](keys, values, begin, end)
    order = np.argsort(given.astype(np.int64) % 2**end >> begin, kind="stable")
    assert np.array_equal(values, order)
    assert np.array_equal(keys, given[order])


@pytest.mark.parametrize(("name", "width"), LANES.items())
@pytest.mark.parametrize("valid", [1, 7, 16])
def test_warps(name: str, width: int, valid: int) -> None:
    kind = np.int32 if "int" in name else np.float32
    values, heads = whole(width, 96).astype(kind), whole(5, 96, low=0, high=4) // 3
    heads = heads.astype(np.int32)
    heads[::width] = 1
    sums, largest, segments = np.zeros(96 // width, kind), np.zeros(96 // width, kind), np.zeros(96, kind)
    module("cub_blocks", *NAMES)[name][1, 96](values, heads, sums, largest, segments, valid)
    rows = values.reshape(-1, width)
    assert np.array_equal(sums, rows.sum(1))
    assert np.array_equal(largest, rows[:, :valid].max(1))
    starts = np.flatnonzero(heads)
    assert np.array_equal(segments[starts], np.add.reduceat(values, starts))


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("count", [1, 320, 700])
def test_loads_and_stores(name: str, count: int) -> None:
    values = whole(count, count).astype(np.int32 if "int" in name else np.float64)
    grid = blocks(count, 320)
    out, sums = np.zeros(grid * 320, values.dtype), np.zeros((grid, 64), values.dtype)
    module("cub_blocks", *NAMES)[name][grid, 64](values, out, sums, count, 7)
    assert np.array_equal(out[:count], values)
    assert not out[count:].any()
    padded = np.concatenate([values, np.full(grid * 320 - count, 7, values.dtype)]).reshape(grid, 320)
    own = padded.reshape(grid, 5, 64).sum(1) if "STRIPED" in name else padded.reshape(grid, 64, 5).sum(2)
    assert np.array_equal(sums, own)
