"""Launches of a `with` block that are made to be timed alone: nobody reads what they write.

An autotuner's trials are such, and what a benchmark runs again and again. A machine may run a part of their blocks.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_only_timed: ContextVar[bool] = ContextVar("triptych_only_timed", default=False)


def is_only_timed() -> bool:
    """Whether launches here are made to be timed alone."""
    return _only_timed.get()


@contextmanager
def only_timed() -> Generator[None]:
    """The launches of the `with` block are."""
    token = _only_timed.set(True)
    try:
        yield
    finally:
        _only_timed.reset(token)
