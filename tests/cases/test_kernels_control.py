"""Whole kernels whose lanes part: uneven loops, switches, early returns, local arrays, atomics, 3-D shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from case_helpers import ARCHITECTURES, random, value

import triptych as tt

Target = pytest.mark.parametrize("target", ARCHITECTURES)


def module(target: str) -> tt.cuda.CudaModule:
    names = [f"saxpy<{name}>" for name in ("float", "double", "__half", "__nv_bfloat16")]
    return tt.cuda.compile(Path(__file__).with_name("case_kernels.cu"), arch=target, names=names)


@Target
@pytest.mark.parametrize(("grid", "block", "n"), [(4, 256, 10_000), (7, 64, 999), (1, 1024, 31), (3, 32, 0)])
def test_block_reduction_by_shuffles_and_an_atomic(grid: int, block: int, n: int, target: str) -> None:
    x, total = random(max(n, 1)), np.zeros(1, np.float32)
    report = module(target)["reduce"][grid, block](x, total, n)
    exact = x[:n].astype(np.float64)
    assert abs(float(total[0]) - exact.sum()) <= (n + 2) * 2.0**-24 * np.abs(exact).sum()
    assert value(report, "global.atomic.requests") == grid
    assert value(report, "global.atomic.bytes") == 4 * grid


@Target
def test_histogram_in_shared_memory(target: str) -> None:
    generator = np.random.default_rng(3)
    for data in (generator.integers(0, 256, 20_001, dtype=np.uint8), np.full(5000, 9, np.uint8)):
        bins = np.zeros(256, np.uint32)
        report = module(target)["histogram"][5, 256](data, data.size, bins)
        assert np.array_equal(bins, np.bincount(data, minlength=256))
        assert value(report, "shared.atomic.bytes") == 4 * data.size
        assert value(report, "global.load.bytes") == data.size


@Target
def test_collatz(target: str) -> None:
    start = np.concatenate([np.arange(1, 1500), [837799, 63728127, 2**31 - 1, 2**32 - 1]]).astype(np.uint32)
    steps = np.full(start.size, -1, np.int32)
    report = module(target)["collatz"][-(-start.size // 128), 128](start, steps, start.size)

    def count(number: int) -> int:
        found = 0
        while number != 1:
            number = 3 * number + 1 if number % 2 else number // 2
            found += 1
        return found

    assert steps.tolist() == [count(int(number)) for number in start]
    assert value(report, "branches.divergent") > 0
    assert report.counters["threads.active_lanes"].value < 32


@Target
@pytest.mark.parametrize("kinds", [[3], [0, 1, 2, 3, 4, 5, 6, 7, 100, -1, 2**31 - 1, -(2**31)]])
def test_switch(kinds: list[int], target: str) -> None:
    n = 999
    kind, x = np.random.default_rng(4).choice(kinds, n).astype(np.int32), random(n)
    y = np.full(n, np.nan, np.float32)
    module(target)["choose"][4, 256](kind, x, y, n)
    wide = x.astype(np.float64)
    cases = {
        0: wide * wide, 1: np.sqrt(np.abs(wide)), 2: 1.0 - wide, 3: wide + 1.0, 5: np.floor(wide),
        7: np.where(wide > 0, 1.0 / (1.0 + np.abs(wide)), wide), 100: np.full(n, 100.0),
    }  # fmt: skip
    expected = np.select([kind == number for number in cases], list(cases.values()), -7.0)
    np.testing.assert_allclose(y, expected, rtol=3e-7, atol=1e-7)


@Target
def test_early_returns(target: str) -> None:
    count = 333
    rows = np.random.default_rng(5).integers(0, 80, (count, 64), dtype=np.int32)
    rows[7] = 1000
    place = np.full(count, -2, np.int32)
    module(target)["find"][3, 128](rows, place, 17, count)
    hits = rows == 17
    assert np.array_equal(place, np.where(hits.any(axis=1), hits.argmax(axis=1), -1))


@Target
@pytest.mark.parametrize("shift", [0, 2**31 + 5, 2**33, -(2**34)])
def test_64_bit_indices(shift: int, target: str) -> None:
    n = 300
    x, y = random(n), np.full(n, np.nan, np.float32)
    origin = (tt.data_ptr(x) - 4 * shift) % 2**64
    module(target)["far"][2, 256](origin, y, shift, n)
    assert np.array_equal(y, x + np.float32(1))


@Target
def test_local_arrays(target: str) -> None:
    n = 200
    x, y = random(n, 9), np.full(n, np.nan, np.float32)
    order = np.random.default_rng(6).permutation(9).astype(np.int32)
    report = module(target)["median"][2, 128](x, y, order, n)
    assert np.array_equal(y, np.median(x, axis=1))
    assert value(report, "local.store.bytes") >= 4 * 9 * n
    assert value(report, "local.load.bytes") >= 4 * 9 * n


@Target
@pytest.mark.parametrize(("grid", "block"), [((3, 2, 2), (4, 3, 5)), ((1, 1, 5), (2, 2, 64)), ((2, 3, 1), (33, 1, 2))])
def test_three_axes(grid: tuple[int, int, int], block: tuple[int, int, int], target: str) -> None:
    out = np.full((*grid[::-1], *block[::-1], 6), -1, np.int32)
    module(target)["places"][grid, block](out)
    extents = (*grid[::-1], *block[::-1])
    z, y, x, tz, ty, tx = np.indices(extents)
    assert np.array_equal(out, np.stack([x, y, z, tx, ty, tz], axis=-1))
