"""Groups of lanes with masks of their own that vote, match, reduce and move values in one instruction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from family import Integers, module, whole

GROUPS = {
    "all": np.zeros(32, np.int32),
    "alone": np.arange(32, dtype=np.int32),
    "halves": np.repeat(np.arange(2, dtype=np.int32), 16),
    "pairs across": np.arange(32, dtype=np.int32) % 16,
    "mixed": whole(4, 32, low=0, high=5),
}
VALUES = {"mixed": whole(1, 32), "extreme": np.where(np.arange(32) % 3, -(2**31), 2**31 - 1).astype(np.int32)}


def expected(
    keys: Integers, values: Integers, columns: Callable[[int, Integers, Integers], list[int]]
) -> list[list[int]]:
    """Columns for each lane from its own place among the group's lanes, those lanes and their values."""
    rows: list[list[int]] = []
    for lane in range(32):
        lanes = np.flatnonzero(keys == keys[lane]).astype(np.int32)
        rows.append(columns(lane, lanes, values[lanes]))
    return rows


def bits(lanes: Integers) -> int:
    return sum(1 << lane for lane in lanes.tolist())


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("value", VALUES)
def test_votes_and_matches(group: str, value: str) -> None:
    keys, values, out = GROUPS[group], VALUES[value], np.zeros((32, 7), np.uint32)

    def columns(lane: int, lanes: Integers, own: Integers) -> list[int]:
        agree = len(set((own & 512).tolist())) == 1
        return [
            bits(lanes), int((own > 500).any()), int((own > -900).all()), bits(lanes[own > 0]),
            int(len(set((own > -900).tolist())) == 1), bits(lanes[(own & 1) == (values[lane] & 1)]),
            (bits(lanes) * 2 + 1) % 2**32 if agree else 0,
        ]  # fmt: skip

    module("masks")["votes"][1, 32](keys, values, out)
    assert out.tolist() == expected(keys, values, columns)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_reductions(group: str, value: str, arch: str) -> None:
    keys, values, out = GROUPS[group], VALUES[value], np.zeros((32, 7), np.int32)

    def columns(lane: int, lanes: Integers, own: Integers) -> list[int]:
        words = own.view(np.uint32)
        unsigned = [
            words.max(),
            np.bitwise_and.reduce(words),
            np.bitwise_or.reduce(words),
            np.bitwise_xor.reduce(words),
        ]
        return [
            int(own.sum(dtype=np.int32)),
            int(own.min()),
            int(own.max()),
            *np.array(unsigned).view(np.int32).tolist(),
        ]

    module("masks", arch=arch)["sums"][1, 32](keys, values, out)
    assert out.tolist() == expected(keys, values, columns)


@pytest.mark.parametrize("group", GROUPS)
def test_moves(group: str) -> None:
    keys, values, out = GROUPS[group], VALUES["mixed"], np.zeros((32, 2), np.int32)

    def columns(lane: int, lanes: Integers, own: Integers) -> list[int]:
        place = lanes.tolist().index(lane)
        return [int(own[0]), int(own[(place + 1) % len(own)])]

    module("masks")["moves"][1, 32](keys, values, out)
    assert out.tolist() == expected(keys, values, columns)
