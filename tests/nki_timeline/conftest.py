"""No target of AWS's environment has a say."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_other_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
