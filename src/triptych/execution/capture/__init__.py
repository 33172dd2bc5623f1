"""Capture: a program runs on arrays without data, and what it would have launched is a plan.

`arrays.py` has the arrays, `views.py` their views, `memory.py` their addresses, `recorded.py` what is noted. Each name
is imported when it is first used: most programs know captured arrays alone, to tell them from others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.execution.capture.arrays import CapturedArray
    from triptych.execution.capture.memory import CaptureMemory
    from triptych.execution.capture.recorded import MOST_BYTES, MOST_NODES, LibraryWork, Recording, recording

__all__ = [
    "MOST_BYTES",
    "MOST_NODES",
    "CaptureMemory",
    "CapturedArray",
    "LibraryWork",
    "Recording",
    "recording",
]

_ORIGINS = {
    "arrays": "CapturedArray",
    "memory": "CaptureMemory",
    "recorded": "MOST_BYTES MOST_NODES LibraryWork Recording recording",
}
_NAMES = {name: origin for origin, names in _ORIGINS.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds misspelt names

    def __getattr__(name: str) -> object:
        """The name, imported now; from then on it is an ordinary attribute."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        return value
