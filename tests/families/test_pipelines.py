"""Copies beside the arithmetic: barriers of shared memory, pipelines of CUDA's library, bulk copies in rings."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from family import Floats, module, normal, whole

import triptych as tt

RINGS = ("ring<1>", "ring<2>", "ring<4>")
kernels = partial(module, "pipelines", *RINGS, arch="sm_90a")


@pytest.mark.parametrize("threads", [32, 96])
def test_rounds_at_a_barrier(threads: int) -> None:
    values, output = whole(threads, 3 * threads), np.zeros(threads, np.int32)
    kernels()["rounds"][1, threads](values, output, values.size)
    expected = np.zeros(threads, np.int64)
    for part in values.reshape(3, -1):
        expected = 3 * expected + part[::-1]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("threads", [1, 40])
def test_threads_that_leave_a_barrier(threads: int) -> None:
    output = np.zeros(threads, np.int32)
    kernels()["leaving"][1, threads](output)
    np.testing.assert_array_equal(output, np.arange(threads))


@pytest.mark.parametrize("kernel", ["tiles_by_barrier", "aligned_tiles_by_barrier", "tiles_by_group"])
@pytest.mark.parametrize("count", [128, 131, 700])
def test_tiles(kernel: str, count: int, profile: tt.Profile) -> None:
    count += -count % 4 if kernel.startswith("aligned") else 0
    values, output = normal(count, count), np.zeros(count, np.float32)
    kernels()[kernel][2, 64](values, output, count)
    tiles = [values[first : first + 128][::-1] for first in range(0, count, 128)]
    np.testing.assert_array_equal(output, np.concatenate(tiles))
    in_bulk = profile.launches[-1].counters.get("shared.async.store.bytes")
    assert (0 if in_bulk is None else in_bulk.value) == (values.nbytes if kernel.startswith("aligned") else 0)


def weighted(values: Floats) -> Floats:
    """Tiles of 64 added up, each times its number."""
    total = np.zeros(64, np.float32)
    for number, tile in enumerate(values.reshape(-1, 64)):
        total += tile * np.float32(number + 1)
    return total


@pytest.mark.parametrize("tiles", [1, 5])
@pytest.mark.parametrize(("kernel", "threads"), [("two_stages", 64), ("own_pipeline", 64), ("roles", 96)])
def test_pipelines(kernel: str, threads: int, tiles: int) -> None:
    values, output = normal(tiles, 64 * tiles), np.zeros(64, np.float32)
    kernels()[kernel][1, threads](values, output, tiles)
    np.testing.assert_allclose(output, weighted(values), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_of_buffers(ring: str, profile: tt.Profile) -> None:
    """One warp copies, two add up; blocks add their sums to the output in bulk."""
    tiles, blocks = 7, 3
    values, output = normal(5, 64 * tiles * blocks), np.zeros(64, np.float32)
    kernels()[ring][blocks, 96](values, output, tiles)
    expected = sum(weighted(part) for part in values.reshape(blocks, -1))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    counters = profile.launches[-1].counters
    assert counters.value("shared.async.store.bytes") == values.nbytes
    assert counters.value("global.load.sectors") == values.nbytes // 32
    assert counters.value("global.load.requests") == tiles * blocks
    assert counters.value("global.atomic.bytes") == 256 * blocks


def test_a_tile_for_both_blocks_of_a_cluster(profile: tt.Profile) -> None:
    values, output = normal(9, 128 * 2), np.zeros(128 * 4, np.float32)
    kernels()["shared_tile"][4, 128](values, output)
    tiles = np.repeat(values.reshape(2, 128), 2, axis=0)
    tiles[1::2] = tiles[1::2, ::-1] + np.float32(1)
    np.testing.assert_array_equal(output.reshape(4, 128), tiles)
    counters = profile.launches[-1].counters
    assert counters.value("global.load.bytes") == values.nbytes
    assert counters.value("shared.async.store.bytes") == 2 * values.nbytes
