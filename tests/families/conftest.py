"""Fixtures of the families of kernels: a pinned chip, and the folder's shared helper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import triptych as tt

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `family.py`, which is no test


@pytest.fixture(autouse=True)
def profile() -> Iterator[tt.Profile]:
    with tt.profile(chip="h100", target="sm_90") as opened:
        yield opened
