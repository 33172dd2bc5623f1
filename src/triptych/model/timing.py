"""What a machine's timeline says of a launch, as far as the model needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """A simulated launch. All of it is modelled."""

    seconds: float
    """From the first instruction's begin to the last one's end."""
    busy: Mapping[str, float]
    """Seconds in which an engine was at work, by its name: of several cores those of the busiest."""
    overlap: float
    """Of the time in which transfers are under way the part in which an engine is at work, from 0 to 1."""
    limited_by: str
    """What most of the critical path is made of."""
    cores: int = 1
    """That ran side by side, each with its own engines and its share of the memory's bandwidth."""
