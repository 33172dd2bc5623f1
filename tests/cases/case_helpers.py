"""What the cases share: random inputs, a counter's value, and what an error must tell."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
ARCHITECTURES = ("sm_80", "sm_90")


def random(*shape: int, seed: int = 0) -> F32:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def value(report: tt.LaunchReport, name: str) -> int:
    """A counter of a launch, 0 where nothing of that name was counted."""
    return int(report.counters.value(name))


def total(launches: list[tt.LaunchReport], *names: str) -> int:
    """The sum of counters over launches."""
    return sum(value(launch, name) for launch in launches for name in names)


def gpu_chips() -> tuple[str, ...]:
    """The names of the GPUs that come with triptych."""
    return tuple(name for name in tt.chips.names() if tt.chips.load(name).machine == "gpu")


@contextmanager
def refused(kind: type[tt.TriptychError], *parts: str) -> Generator[pytest.ExceptionInfo[tt.TriptychError]]:
    """Expects an error of exactly this class whose text has all the parts, in this order, once each at least."""
    with pytest.raises(tt.TriptychError) as caught:
        yield caught
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {caught.value}"
    text, start = str(caught.value), 0
    for part in parts:
        found = text.find(part, start)
        assert found >= 0, f"'{part}' is not in what is left of:\n{text}"
        start = found + len(part)


def line_of(error: BaseException) -> str:
    """The text of the author's line that an error of triptych names; empty where it names none."""
    assert isinstance(error, tt.TriptychError)
    return error.where.text if error.where is not None else ""
