"""What tests of captures share."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `here.py`, which is no test


@pytest.fixture(scope="session", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Triton's disk cache is this run's alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield


@pytest.fixture(autouse=True)
def either_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of first launches: how kernels are compiled is tested elsewhere."""
    monkeypatch.setenv("TRIPTYCH_OPTIMISE", "never")
