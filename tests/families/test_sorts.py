"""Sorting: networks in shared and global memory, merging, and digits of four bits; with a payload, and stable."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from family import Floats, blocks, module

Words = npt.NDArray[np.uint32]
NAMES = ("network<true>", "network<false>", "merge_runs<float>", "merge_runs<long long>")


def words(seed: int, count: int, high: int = 2**32) -> tuple[Words, Words]:
    return np.random.default_rng(seed).integers(0, high, count, np.uint32), np.arange(count, dtype=np.uint32)


@pytest.mark.parametrize("odd_even", ["true", "false"])
@pytest.mark.parametrize("length", [2, 16, 256])
@pytest.mark.parametrize("up", [True, False])
def test_networks(odd_even: str, length: int, up: bool) -> None:
    keys, values = words(length, 3 * length, 3 * length // 2)
    given = keys.copy()
    module("sorts", *NAMES)[f"network<{odd_even}>"][3, length // 2](keys, values, length, up)
    wanted = np.sort(given.reshape(3, length), 1)
    assert np.array_equal(keys.reshape(3, length), wanted if up else wanted[:, ::-1])
    assert np.array_equal(given[values], keys)
    assert np.array_equal(np.sort(values), np.arange(3 * length))


def test_bitonic_in_global_memory() -> None:
    keys, values = words(5, 1024)
    given = keys.copy()
    step_of = module("sorts", *NAMES)["bitonic_step"]
    for size in (2**k for k in range(1, 11)):
        for step in (size >> k for k in range(1, size.bit_length())):
            step_of[4, 128](keys, values, size, step, 512)
    assert np.array_equal(keys, np.sort(given))
    assert np.array_equal(values, np.argsort(given))


@pytest.mark.parametrize("count", [1, 2, 63, 500])
@pytest.mark.parametrize("kind", ["float", "long long"])
def test_merging(kind: str, count: int) -> None:
    numbers = np.random.default_rng(count).integers(-20, 20, count)
    keys = numbers.astype(np.float32) if kind == "float" else numbers * 2**40
    values, order = np.arange(count, dtype=np.int32), np.argsort(keys, kind="stable")
    width, grid, wanted = 1, blocks(count, 64), keys[order]
    while width < count:
        to_keys, to_values = np.zeros_like(keys), np.zeros_like(values)
        merge = module("sorts", *NAMES)[f"merge_runs<{kind}>"]
        merge[grid, 64](keys, values, to_keys, to_values, width, count)
        keys, values, width = to_keys, to_values, 2 * width
    assert np.array_equal(keys, wanted)
    assert np.array_equal(values, order)


def by_digits(keys: Words, values: Words) -> tuple[Words, Words]:
    """Eight passes of a radix sort."""
    kernels, tiles = module("sorts", *NAMES), blocks(len(keys), 64)
    for shift in range(0, 32, 4):
        counts, to_keys, to_values = np.zeros(16 * tiles, np.uint32), np.zeros_like(keys), np.zeros_like(values)
        kernels["count_digits"][tiles, 64](keys, counts, shift, len(keys))
        kernels["sum_before"][1, 128](counts, len(counts))
        kernels["move_digits"][tiles, 64](keys, values, to_keys, to_values, counts, shift, len(keys))
        keys, values = to_keys, to_values
    return keys, values


@pytest.mark.parametrize(("count", "high"), [(1, 9), (65, 2**32), (1000, 50), (1500, 2**32)])
def test_by_digits(count: int, high: int) -> None:
    given, places = words(count, count, high)
    keys, values = by_digits(given, places)
    assert np.array_equal(keys, np.sort(given))
    assert np.array_equal(values, np.argsort(given, kind="stable"))


def test_floats_by_digits() -> None:
    random = np.random.default_rng(3)
    numbers: Floats = random.standard_normal(200, dtype=np.float32)
    edges = np.array([0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    numbers[random.permutation(200)[:96]] = np.tile(edges, 12)
    bits, places = numbers.view(np.uint32).copy(), np.arange(200, dtype=np.uint32)
    order_bits = module("sorts", *NAMES)["order_bits"]
    order_bits[4, 64](bits, 200, False)
    bits, places = by_digits(bits, places)
    order_bits[4, 64](bits, 200, True)
    order = np.lexsort((~np.signbit(numbers), numbers))  # stable, -0 before 0
    assert np.array_equal(places, order)
    assert np.array_equal(bits, numbers[order].view(np.uint32))
