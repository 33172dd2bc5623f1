"""What a format is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triptych.judge.capture.request import CaptureSize

Namespace = Mapping[str, Any]
"""What a candidate's source defines."""
Call = Callable[[Sequence[Any]], object]
"""Calls the candidate on its inputs, in their order; what it returns."""


class NoSolution(Exception):
    """The source does not define what its format asks for, or with other parameters."""


@dataclass(frozen=True, slots=True)
class Format:
    """A row."""

    name: str
    entry: str
    """What a candidate's source must define."""
    meaning: str
    """In one sentence."""
    torch: bool
    """Whether inputs are always tensors of torch."""
    bind: Callable[[Namespace, CaptureSize], Call]
    """How a candidate of the namespace is called at a size; raises `NoSolution`."""
