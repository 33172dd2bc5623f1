"""Prices of options: by formula, by random paths, by trees; and a generator of random numbers by counter."""

from __future__ import annotations

from math import erf, exp, sqrt

import numpy as np
import numpy.typing as npt
import pytest
from family import Doubles, blocks, module

TREES = ("by_tree<63, false>", "by_tree<63, true>", "by_tree<1, true>")


@pytest.mark.parametrize("count", [1, 255, 700])
def test_black_and_scholes(count: int) -> None:
    random = np.random.default_rng(count)
    prices, strikes, years = (random.uniform(low, high, count).astype(np.float32) for low, high in
                              ((5, 30), (5, 100), (0.25, 10)))  # fmt: skip
    years[-1] = 0
    calls, puts = np.zeros((2, count), np.float32)
    module("finance", *TREES)["black_scholes"][2, 128](prices, strikes, years, calls, puts, 0.02, 0.3, count)
    for i, (s, x, t) in enumerate(np.stack([prices, strikes, years], 1).astype(np.float64).tolist()):
        if t == 0:
            call, put = max(s - x, 0), max(x - s, 0)
        else:
            d = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * sqrt(t))
            up, later = ((1 + erf(one / sqrt(2))) / 2 for one in (d, d - 0.3 * sqrt(t)))
            call = s * up - x * exp(-0.02 * t) * later
            put = call - s + x * exp(-0.02 * t)
        assert abs(calls[i] - call) < 5e-5
        assert abs(puts[i] - put) < 5e-5


Words = npt.NDArray[np.uint64]


def scrambled(counter: Words, key: tuple[int, int]) -> Words:
    """The generator's words, counters in rows of four."""
    low, (a, b, c, d), keys = np.uint64(2**32 - 1), counter.T, np.array(key, np.uint64)
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b = (second >> np.uint64(32)) ^ b ^ keys[0], second & low
        c, d = (first >> np.uint64(32)) ^ d ^ keys[1], first & low
        keys = keys + np.array([0x9E3779B9, 0xBB67AE85], np.uint64) & low
    return np.stack([a, b, c, d], 1)


def counters(rows: int, *columns: npt.NDArray[np.int64] | int) -> Words:
    return np.stack([np.broadcast_to(np.asarray(column, np.uint64), rows) for column in columns], 1)


KEY = np.array([0xDEADBEEF, 12345], np.uint32)


def key_argument() -> npt.NDArray[np.void]:
    return KEY.view([("x", np.uint32), ("y", np.uint32)])[0]


@pytest.mark.parametrize("count", [1, 33, 300])
def test_random_words(count: int) -> None:
    words = np.zeros((count, 4), np.uint32)
    module("finance", *TREES)["random_words"][blocks(count, 64), 64](words, key_argument(), count)
    rows = np.arange(count)
    assert np.array_equal(words, scrambled(counters(count, rows, 0, 7, 2**32 - 1 - rows), (0xDEADBEEF, 12345)))


def test_a_circle() -> None:
    hits = np.zeros(1, np.uint64)
    module("finance", *TREES)["circle"][3, 64](hits, key_argument(), 9)
    words = scrambled(
        counters(192 * 9, np.repeat(np.arange(192), 9), np.tile(np.arange(9), 192), 0, 0), (0xDEADBEEF, 12345)
    )
    x, y = ((words[:, k] >> np.uint64(8)).astype(np.float64) / 2**24 for k in (0, 1))
    assert abs(int(hits[0]) - np.count_nonzero(x * x + y * y < 1)) <= 1  # a point may lie on the circle itself
    assert 0.7 < hits[0] / (192 * 9) < 0.87


@pytest.mark.parametrize("count", [1, 500])
def test_paths(count: int) -> None:
    sums = np.zeros((2, 2))
    module("finance", *TREES)["paths"][2, 64](sums, key_argument(), 100, 105, 0.01, 0.25, count)
    for block in range(2):
        words = scrambled(counters(count, np.arange(count), block, 0, 0), (0xDEADBEEF, 12345)) >> np.uint64(8)
        u, angle = (words[:, 0].astype(np.float64) + 1) / 2**24, words[:, 1].astype(np.float64) / 2**23
        gauss = np.sqrt(-2 * np.log(u)) * np.cos(np.pi * angle)
        values = np.maximum(100 * np.exp(0.01 + 0.25 * gauss) - 105, 0)
        np.testing.assert_allclose(sums[block], [values.sum(), (values**2).sum()], rtol=1e-5, atol=1e-3)


def tree(prices: Doubles, steps: int, american: bool, up: float, likely: float, unlikely: float) -> Doubles:
    def worth(step: int) -> Doubles:
        return 20 - prices[:, None] * up ** (2.0 * np.arange(step + 1) - step)

    layer = np.maximum(worth(steps), 0)
    for step in range(steps - 1, -1, -1):
        layer = likely * layer[:, 1:] + unlikely * layer[:, :-1]
        layer = np.maximum(layer, worth(step)) if american else layer
    return layer[:, 0]


@pytest.mark.parametrize(("steps", "american"), [(63, False), (63, True), (1, True)])
def test_trees(steps: int, american: bool) -> None:
    prices, values = np.array([1, 15, 19.5, 20, 60], np.float32), np.zeros(5, np.float32)
    up, likely, unlikely = 1.02, 0.501, 0.498
    kernel = module("finance", *TREES)[f"by_tree<{steps}, {str(american).lower()}>"]
    kernel[5, 64](prices, values, 20, up, likely, unlikely)
    wanted = tree(prices.astype(np.float64), steps, american, *map(float, map(np.float32, (up, likely, unlikely))))
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-4)
