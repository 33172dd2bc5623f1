"""Where in the author's own code we were called from: the walk up the stack that every language shares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from triptych.core.source import SourceLocation

# Kernels lie elsewhere in the package too, and their lines count as an author's.
_LANGUAGES = str(Path(__file__).parent) + "/"


def frames() -> Iterator[FrameType]:
    """The frames of the stack, from the caller's outwards."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # nothing public is as fast
    while frame is not None:
        yield frame
        frame = frame.f_back


def calling_frame(*foreign: str) -> FrameType | None:
    """The innermost frame of a file that is no language's own, nor has a name that starts with one of `foreign`."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _skipped(frame.f_code.co_filename, foreign):
        frame = frame.f_back
    return frame


@lru_cache(4096)
def _skipped(file: str, foreign: tuple[str, ...]) -> bool:
    """Whether a file is a language's own, or foreign."""
    return file.startswith((_LANGUAGES, *foreign))


def calling_location(*foreign: str) -> SourceLocation | None:
    """The line of that frame; None where the stack has no such frame."""
    frame = calling_frame(*foreign)
    return None if frame is None else SourceLocation(frame.f_code.co_filename, frame.f_lineno)


def raised_at(error: BaseException) -> SourceLocation | None:
    """The author's line that an exception came through: their innermost before a language's code that they called.

    None where all of it is a language's.
    """
    found, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_LANGUAGES):
            found = SourceLocation(file, trace.tb_lineno)
        elif found is not None:
            break
        trace = trace.tb_next
    return found


_OWN: dict[str, bool] = {}
"""Of files whether they are a language's own."""
_MOST_FILES = 1 << 12
_PLACES: dict[tuple[int, int], tuple[CodeType, SourceLocation]] = {}
"""The lines of places in code, by the code's identity: to tell its line takes a frame of long code long."""
_MOST_PLACES = 1 << 16


def _is_own(file: str) -> bool:
    """Whether a file of which that is not known is a language's own."""
    if len(_OWN) >= _MOST_FILES:
        _OWN.clear()
    own = _OWN[file] = _skipped(file, ())
    return own


def author_location(inside: int = 0) -> SourceLocation:
    """The innermost line that is no language's own: there is one, for something called the language.

    The caller says of how many frames, from its own outwards, it knows that they are a language's.
    """
    frame: FrameType | None = sys._getframe(1 + inside)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        own = _OWN.get(frame.f_code.co_filename)
        if not (_is_own(frame.f_code.co_filename) if own is None else own):
            break
        frame = frame.f_back
    assert frame is not None
    code, place = frame.f_code, frame.f_lasti
    known = _PLACES.get((id(code), place))
    if known is not None and known[0] is code:
        return known[1]
    if len(_PLACES) >= _MOST_PLACES:
        _PLACES.clear()
    found = SourceLocation(code.co_filename, frame.f_lineno)
    _PLACES[id(code), place] = (code, found)
    return found
