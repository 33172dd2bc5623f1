"""Virtual functions, pointers to functions, recursion."""

from __future__ import annotations

import numpy as np
import pytest
from family import blocks, module, normal, whole


@pytest.mark.parametrize("count", [1, 70])
def test_virtual_functions(count: int) -> None:
    sizes, out, corners = normal(count, count), np.zeros(count, np.float32), np.zeros(count, np.int32)
    module("dispatch")["areas"][blocks(count, 64), 64](sizes, out, corners, count)
    circles = np.arange(count) % 3 == 0
    np.testing.assert_allclose(out, sizes.astype(np.float64) ** 2 * np.where(circles, 3, 1), rtol=1e-6)
    assert np.array_equal(corners, np.where(circles, 0, 4))


@pytest.mark.parametrize("count", [1, 33, 100])
def test_pointers_to_functions(count: int) -> None:
    which, a, b, out = whole(1, count, low=0, high=3), whole(2, count), whole(3, count), np.zeros(count, np.int32)
    module("dispatch")["chosen"][blocks(count, 32), 32](which, a, b, out, count)
    assert np.array_equal(out, np.choose(which, [a + b, a - b, a * b]))


def test_recursion() -> None:
    n, (numbers, evens) = np.arange(13, dtype=np.int32), np.zeros((2, 13), np.int32)
    module("dispatch")["recursive"][1, 13](n, numbers, evens)
    assert numbers.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144]
    assert evens.tolist() == [1, 0] * 6 + [1]


@pytest.mark.parametrize("width", [1, 2, 40])
def test_sorting_by_recursion(width: int) -> None:
    rows = whole(width, 37, width, low=-9, high=9)
    wanted = np.sort(rows, 1)
    module("dispatch")["sort_rows"][1, 37](rows, width)
    assert np.array_equal(rows, wanted)
