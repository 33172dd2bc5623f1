"""Fixtures of the tests that run kernels twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triptych.core.settings import scope

# The tests share `waiting_kernels.py`, `both.py` and `tensor_cases.py`.
for _folder in ("gpu_machine", "gpu_differential", "hardware"):
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))


@pytest.fixture(autouse=True)
def one_worker() -> Iterator[None]:
    """Blocks run in order, so that the order of float atomics is the same in every run."""
    with scope(workers=1):
        yield
