"""Where in the user's own code we were called from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from triptych.core.source import SourceLocation

_OURS = str(Path(__file__).parents[1]) + "/"


def calling_frame() -> FrameType | None:
    """The innermost frame that runs code outside of triptych."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def calling_location() -> SourceLocation | None:
    """The line of that frame."""
    frame = calling_frame()
    return None if frame is None else SourceLocation(frame.f_code.co_filename, frame.f_lineno)
