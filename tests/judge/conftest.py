"""What tests of the judge share."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from triptych import judge

sys.path.insert(0, str(Path(__file__).parent))  # what tests share: `plans.py`, `vec_add_sources.py`


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of object code of kernels that run in this process."""
    return tmp_path_factory.mktemp("judge-cache")


@pytest.fixture(scope="session")
def pool() -> Generator[judge.Pool]:
    """A warm pool."""
    with judge.Pool(2) as one:
        yield one
