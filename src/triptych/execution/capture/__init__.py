"""Capture: a program runs on arrays without data, and what it would have launched is a plan.

`arrays.py` has the arrays, `views.py` their views, `memory.py` their addresses, `recording.py` what is noted.
"""

from triptych.execution.capture.arrays import CapturedArray
from triptych.execution.capture.memory import CaptureMemory
from triptych.execution.capture.recording import MOST_BYTES, MOST_NODES, LibraryWork, Recording, recording

__all__ = [
    "MOST_BYTES",
    "MOST_NODES",
    "CaptureMemory",
    "CapturedArray",
    "LibraryWork",
    "Recording",
    "recording",
]
