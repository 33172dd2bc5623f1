"""Which line of the author's program asked for a launch."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Literal

from triptych.core.source import SourceLocation

_OURS = f"{Path(__file__).parents[1]}/"
_DEMO = f"{_OURS}demo/"
"""Its programs lie in the package, and count as an author's."""
_STANDARD = f"{sysconfig.get_path('stdlib')}/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


def call_site() -> SourceLocation | None:
    """The innermost line on the stack that is neither ours nor of an installed package or Python's own library.

    Where a package launches on its own (a thread that a library started), the innermost line that is not ours.
    """
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # nothing public is as fast
    nearest: FrameType | None = None
    while frame is not None:
        whose = _whose(frame.f_code.co_filename)
        if whose == "author":
            return _location(frame.f_code.co_filename, frame.f_lineno)
        if whose == "library" and nearest is None:
            nearest = frame
        frame = frame.f_back
    return None if nearest is None else _location(nearest.f_code.co_filename, nearest.f_lineno)


@lru_cache(maxsize=4096)
def _whose(file: str) -> Literal["ours", "library", "author"]:
    """Who wrote a file."""
    if file.startswith(_OURS):
        return "author" if file.startswith(_DEMO) else "ours"
    library = file.startswith((_STANDARD, "<frozen ")) or any(folder in file for folder in _INSTALLED)
    return "library" if library else "author"


_location = lru_cache(maxsize=4096)(SourceLocation)
"""A line's location, made once: making one takes as long as the walk."""
