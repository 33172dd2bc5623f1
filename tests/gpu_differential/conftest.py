"""Fixtures of the tests that run kernels twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triptych.core.settings import scope

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `both.py`, which is no test


@pytest.fixture(autouse=True)
def one_worker() -> Iterator[None]:
    """Blocks run in order, so that the order of float atomics is the same in every run."""
    with scope(workers=1):
        yield
