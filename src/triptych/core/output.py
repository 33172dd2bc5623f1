"""What kernels print: one way out, which whoever runs them can redirect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

Sink = Callable[[str], None]
"""Takes what a launch printed."""

_sink: ContextVar[Sink | None] = ContextVar("triptych_output", default=None)


@contextmanager
def redirecting(sink: Sink) -> Generator[None]:
    """Gives `sink` what kernels print inside a `with` block, instead of standard output."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def write_output(text: str) -> None:
    """For a machine: hands over what a launch printed, all at once and in the thread that launched."""
    if not text:
        return
    sink = _sink.get()
    if sink is not None:
        sink(text)
        return
    sys.stdout.write(text)
    sys.stdout.flush()
