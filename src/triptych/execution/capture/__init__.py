"""Capture: a program runs on arrays without data, and what it would have launched is a plan.

`arrays.py` has the arrays, `views.py` their views, `memory.py` their addresses, `recorded.py` what is noted. Each name
is imported when it is first used: most programs know captured arrays alone, to tell them from others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

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

if not TYPE_CHECKING:
    __getattr__ = importing(__name__, _ORIGINS)
