"""What tests of kernels share."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `operator_cases.py`, which is no test


@pytest.fixture(scope="session", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Triton's disk cache is this run's alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield
