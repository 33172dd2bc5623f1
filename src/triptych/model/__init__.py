"""The model: a launch's counters and a chip -> intensity, roofline, time. Every number here is modelled.

A program that switches a language on may never ask for one: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.model.placement import place
    from triptych.model.roofline import Roof, Roofline, Traffic
    from triptych.model.timing import Timing

__all__ = ["Roof", "Roofline", "Timing", "Traffic", "place"]

_NAMES = {"Roof": "roofline", "Roofline": "roofline", "Timing": "timing", "Traffic": "roofline", "place": "placement"}


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds misspelt names

    def __getattr__(name: str) -> object:
        """The name, imported now; from then on it is an ordinary attribute."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        return value
