"""The model: a launch's counters and a chip -> intensity, roofline, time. Every number here is modelled.

A program that switches a language on may never ask for one: each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

if TYPE_CHECKING:
    from triptych.model.placement import place
    from triptych.model.roofline import Roof, Roofline, Traffic
    from triptych.model.timing import Timing

__all__ = ["Roof", "Roofline", "Timing", "Traffic", "place"]

_ORIGINS = {"placement": "place", "roofline": "Roof Roofline Traffic", "timing": "Timing"}

if not TYPE_CHECKING:
    __getattr__ = importing(__name__, _ORIGINS)
