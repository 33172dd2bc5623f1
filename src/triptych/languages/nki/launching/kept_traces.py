"""Traces of calls, kept for calls that must give the same: of pure kernels, with arguments that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from triptych.languages.nki.launching.captures import Capture
from triptych.languages.nki.launching.purity import Dependences, dependences

_MOST = 64
"""Traces that are kept; the first to come are the first to go."""
_MOST_TEXT = 1 << 22
"""Characters of a trace that is kept."""


@dataclass(frozen=True, slots=True)
class _Kept:
    capture: Capture
    depends: Dependences
    held: tuple[object, ...]
    """What the key names by its identity."""


_KEPT: dict[Hashable, _Kept] = {}


def find(key: Hashable) -> Capture | None:
    """The capture of a call of that key, if nothing has changed that its trace depends on."""
    kept = _KEPT.get(key)
    if kept is None:
        return None
    if kept.depends.unchanged():
        return kept.capture
    _KEPT.pop(key, None)  # another thread may have been here
    return None


def keep(key: Hashable, function: Callable[..., object], capture: Capture, held: tuple[object, ...]) -> None:
    """Keep a capture for calls of the same key, where the function is pure; `held` are the objects that the key names.

    It is to hold no arrays.
    """
    if capture.constants or len(capture.program.text) > _MOST_TEXT:
        return
    depends = dependences(function)
    if depends is None:
        return
    while len(_KEPT) >= _MOST:
        _KEPT.pop(next(iter(_KEPT)), None)
    _KEPT[key] = _Kept(capture, depends, held)
