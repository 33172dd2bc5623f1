"""The tests' target: NeuronCore-v3, whatever the environment says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triptych.execution.profile import Profile, profile

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `one_kernel.py`, which is no test


@pytest.fixture(autouse=True)
def trn2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Profile]:
    """A profile for trn2, which every launch of the test is recorded in."""
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    with profile(chip="trn2") as opened:
        yield opened
