"""Fixtures of the tests of the machine alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import triptych as tt

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `waiting_kernels.py`, which is no test


@pytest.fixture(autouse=True)
def two_workers() -> Iterator[None]:
    with tt.scope(workers=2):
        yield
