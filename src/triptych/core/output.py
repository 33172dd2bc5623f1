"""What kernels print: one way out, which whoever runs them can redirect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_SIGNS = _PICTURES | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""Unicode's pictures of control characters; those from 128 on have none."""


def visible(text: str) -> str:
    """The text with the characters that would steer a terminal replaced by signs, but for line ends and tabs."""
    return text.translate(_SIGNS)


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
