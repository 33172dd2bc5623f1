"""Fixtures of the cases: a pinned chip, Triton and NKI active while a test runs, and the folder's shared helpers."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

import triptych as tt

sys.path.insert(0, str(Path(__file__).parent))  # the cases share `case_*.py`, which are no tests


@pytest.fixture(autouse=True)
def profile(monkeypatch: pytest.MonkeyPatch) -> Generator[tt.Profile]:
    """A profile for an H100 (and, for NKI, the trn2), whatever the environment says."""
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    monkeypatch.delenv("TRIPTYCH_BUDGET", raising=False)
    with tt.profile(chip="h100", target="sm_90") as opened:
        yield opened


@pytest.fixture(scope="session")
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Triton's disk cache of this test run alone."""
    folder = tmp_path_factory.mktemp("triton-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def triton_sm80(triton_cache: Path) -> Generator[tt.Profile]:
    """Triton on the machine, compiling for sm_80, placed on an A100."""
    with tt.triton.activate(), tt.profile(chip="a100-80", target="sm_80") as opened:
        yield opened


@pytest.fixture
def nki_active() -> Generator[None]:
    """`import nki` and `import neuronxcc.nki` give triptych's."""
    tt.nki.activate()
    yield
    tt.nki.deactivate()
