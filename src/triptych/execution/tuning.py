"""What an autotuner of a language found out: its configurations with their modelled times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.core.source import SourceLocation


@dataclass(frozen=True, slots=True)
class Tuning:
    """One choice among configurations of a kernel, made for a chip and a problem."""

    kernel: str
    chip: str
    """The chip's title."""
    problem: str
    """What the choice is kept for, as the autotuner writes it."""
    seconds: Mapping[str, float]
    """Modelled, by configuration, in the order of trying; infinite for one that the chip cannot launch."""
    chosen: str
    """The configuration of the least time."""
    call_site: SourceLocation | None
    """The line of the author's program that asked for it."""
