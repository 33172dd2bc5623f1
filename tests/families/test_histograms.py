"""Histograms: bins of bytes, bins of warps, and lanes of one key that add together."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, whole


@pytest.mark.parametrize("count", [1, 63, 1000, 4001])
@pytest.mark.parametrize("skewed", [False, True])
def test_bins(count: int, skewed: bool) -> None:
    data = np.random.default_rng(count).integers(0, 7 if skewed else 256, 4 * count, dtype=np.uint8)
    bins = np.zeros(64, np.uint32)
    module("histograms")["of_64_bins"][2, 64](data.view(np.uint32), bins, count)
    assert np.array_equal(bins, np.bincount(data >> 2, minlength=64))
    bins = np.zeros(256, np.uint32)
    module("histograms")["of_256_bins"][3, 128](data, bins, count)
    assert np.array_equal(bins, np.bincount(data, minlength=256))


@pytest.mark.parametrize("count", [1, 32, 777])
@pytest.mark.parametrize("keys", [1, 5, 100])
def test_lanes_of_one_key(count: int, keys: int) -> None:
    key = whole(count, count, low=0, high=keys)
    counts, sums, rounds = np.zeros(keys, np.int32), np.zeros(keys, np.int32), np.zeros(1, np.int32)
    module("histograms")["by_matching_lanes"][blocks(count, 64), 64](key, counts, sums, rounds, count)
    assert np.array_equal(counts, np.bincount(key, minlength=keys))
    assert np.array_equal(sums, np.bincount(key, np.arange(count), keys))
    assert rounds[0] == sum(len(set(key[start : start + 32].tolist())) for start in range(0, count, 32))


@pytest.mark.parametrize("count", [1, 33, 1000])
def test_what_a_branch_keeps(count: int) -> None:
    values, kept, length = whole(count, count), np.zeros(count, np.int32), np.zeros(1, np.int32)
    values[0] = 5
    report = module("histograms")["keep_positive"][blocks(count, 96), 96](values, kept, length, count)
    wanted = values[values > 0]
    assert length[0] == len(wanted)
    assert np.array_equal(np.sort(kept[: len(wanted)]), np.sort(wanted))
    assert (kept[len(wanted) :] == 0).all()
    warps = [values[start : start + 32] for start in range(0, count, 32)]
    assert report.counters.value("global.atomic.requests") == sum(bool((warp > 0).any()) for warp in warps)


@pytest.mark.parametrize("count", [1, 40, 500])
def test_largest_of_buckets(count: int) -> None:
    keys, values, largest = whole(1, count, low=0, high=6), whole(2, count), np.full(6, -(2**31), np.int32)
    module("histograms")["largest_of_buckets"][blocks(count, 128), 128](keys, values, largest, count)
    assert largest.tolist() == [max(values[keys == key], default=-(2**31)) for key in range(6)]
