"""Threads and warps that leave early, before barriers that the others reach."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, whole

import triptych as tt


@pytest.mark.parametrize("staying", [1, 3, 8])
def test_warps_that_leave(staying: int) -> None:
    out = np.zeros((2, 256), np.int32)
    module("leaving")["warps_leave"][2, 256](out, staying)
    threads = staying * 32
    assert np.array_equal(out[:, :threads], np.tile(3 * np.arange(threads)[::-1], (2, 1)))
    assert (out[:, threads:] == -1).all()


@pytest.mark.parametrize("count", [1, 31, 32, 100])
def test_lanes_that_leave(count: int) -> None:
    rounds, out = whole(count, count, low=0, high=9), np.zeros(count, np.int32)
    module("leaving")["lanes_leave"][blocks(count, 64), 64](rounds, out, count)
    for start in range(0, count, 32):
        warp = rounds[start : start + 32]
        wanted = [sum(int((warp > round_).sum()) for round_ in range(own)) for own in warp.tolist()]
        assert out[start : start + 32].tolist() == wanted


@pytest.mark.parametrize("rounds", [1, 5])
def test_counting_those_left(rounds: int) -> None:
    out = np.zeros((rounds, 8), np.int32)
    module("leaving")["counted"][1, 256](out, rounds)
    for round_ in range(rounds):
        wanted = (8 - round_) * 16 * 4 + 2 + (round_ == 0)
        assert out[round_].tolist() == [0] * round_ + [wanted] * (8 - round_)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("rounds", [1, 2, 3, 8])
def test_makers_and_users(rounds: int, workers: int) -> None:
    values, out = whole(rounds, rounds, 32), np.zeros((rounds, 32), np.int32)
    with tt.scope(workers=workers):
        module("leaving")["make_and_use"][1, 64](values, out, rounds)
    assert np.array_equal(out, 3 * values[:, ::-1])
