"""Where in the author's source a call of the language comes from."""

from __future__ import annotations

import sys
from pathlib import Path

from triptych.core.source import SourceLocation

_HERE = str(Path(__file__).parent) + "/"


def user_location() -> SourceLocation:
    """The innermost line on the stack that is not the language's own."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the stack has no public access that is as fast
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
