"""What kernels print, and what they assert."""

from __future__ import annotations

import numpy as np
import pytest
from family import module, normal

import triptych as tt


@pytest.mark.parametrize("workers", [1, 2])
def test_printing_places(capsys: pytest.CaptureFixture[str], workers: int) -> None:
    values = normal(1, 6)
    with tt.scope(workers=workers):
        module("printing")["places"][(3, 2), (2, 3, 2)](values)
    lines = [
        f"[{block % 3} {block // 3}] {thread:02}: {word} {values[block]:.3f} {letter}"
        for block in range(6)
        for thread, word, letter in ((0, "first", "a"), (5, "later", "f"), (10, "later", "k"))
    ]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("bad", [(70, 100), (130,), (0, 191)])
def test_the_first_thread_that_asserts(bad: tuple[int, ...]) -> None:
    values, done = np.zeros(192, np.int32), np.zeros(192, np.int32)
    values[list(bad)] = 9
    with (
        tt.scope(workers=1),
        pytest.raises(tt.AssertionFailure, match=r"Assertion `values\[i\] < bound` failed") as caught,
    ):
        module("printing")["bounded"][3, (16, 4)](values, done, 9)
    first = bad[0] % 64
    assert caught.value.block == (bad[0] // 64, 0, 0)
    assert caught.value.thread == (first % 16, first // 16, 0)
    assert not done[list(bad)].any()


def test_assertions_that_hold() -> None:
    values, done = np.zeros(192, np.int32), np.zeros(192, np.int32)
    module("printing")["bounded"][3, (16, 4)](values, done, 1)
    assert done.all()
