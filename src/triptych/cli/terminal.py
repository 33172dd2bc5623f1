"""Standard output and standard error: everything that is printed goes through here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from triptych.core.errors import LaunchInterrupted, UsageError
from triptych.core.output import visible
from triptych.core.progress import listening

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""
PLAIN_WIDTH = 120
"""Columns of what is no terminal, where `COLUMNS` does not say more."""
EXIT_STATUSES: Mapping[int, str] = {
    0: "all is well",
    EXIT_FINDINGS: "a check found something, `demo` computed something wrong, or `score` did not pass somebody",
    EXIT_USAGE: "a wrong use, or an error",
    EXIT_INTERRUPTED: "interrupted by Ctrl-C",
}
"""What the command's exit status says. Under `run` the script's own goes first, where it is not 0."""


def standard_stream(*, stderr: bool) -> TextIO:
    """This process's own standard output or error, whatever a script put into `sys` in its place, or closed there.

    Raises:
        OSError: where the process has none.
    """
    stream = sys.__stderr__ if stderr else sys.__stdout__
    with suppress(ValueError):  # a stream without its buffer
        if stream is not None and not stream.closed:
            return stream
    return open(2 if stderr else 1, "w", encoding="utf-8", errors="replace", closefd=False)


def flush_streams() -> None:
    """What a script has printed goes out, be it into streams of its own; one that takes nothing more is left alone."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()


@contextmanager
def writing(what: str) -> Generator[None]:
    """A standard output that was closed, or is full, is one error of ours; `what` is what it should have held.

    Raises:
        UsageError: where it cannot be written.
    """
    try:
        yield
    except (OSError, ValueError) as problem:
        raise UsageError(f"cannot write {what} to standard output: {problem}") from problem


def interruption(stop: KeyboardInterrupt) -> LaunchInterrupted:
    """Ctrl-C as an error of ours, which says what ran, where that is known."""
    return LaunchInterrupted(" ".join(["interrupted", *getattr(stop, "__notes__", ())]))


@contextmanager
def interruptible() -> Generator[None]:
    """Ctrl-C becomes an error of ours, which `main` prints in one line; typer would have its own way with it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise interruption(stop) from stop


@contextmanager
def progress_bars() -> Generator[None]:
    """Long launches show a bar on standard error, where that is a terminal."""
    stream: TextIO | None = sys.stderr  # there is none where the process was started without
    if stream is None or not stream.isatty():
        yield
        return
    from triptych.report.progress import LaunchProgress

    console = _console(stderr=True)
    with listening(lambda kernel: LaunchProgress(kernel, console)):
        yield


@contextmanager
def counting(title: str) -> Generator[Callable[[int, int, str], None]]:
    """A bar of what is done, on standard error if that is a terminal; the block tells how much, of what, and news."""
    stream: TextIO | None = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda done, total, news: None
        return
    from triptych.report.progress import WorkProgress

    with WorkProgress(title, _console(stderr=True)) as bar:
        yield bar


class Terminal:
    """Prints. Colours are for terminals; into a file or a pipe goes plain text of 120 columns, or of `COLUMNS`."""

    def __init__(self) -> None:
        """On this process's standard output and standard error."""
        self._out: Console | None = None

    @property
    def out(self) -> Console:
        """Standard output."""
        if self._out is None:
            self._out = _console(stderr=False)
        return self._out

    @property
    def width(self) -> int:
        """Columns of standard output."""
        with writing("the report"):
            return self.out.width

    def show(self, content: RenderableType) -> None:
        """Prints a table, a text or a group of them on standard output."""
        from rich.segment import Segment, Segments

        with writing("the report"):
            segments = self.out.render(content)
            shown = (Segment(visible(one.text), one.style, one.control) for one in segments)
            self.out.print(Segments(shown), end="")
            self.out.file.flush()

    def say(self, text: str) -> None:
        """Prints text on standard output, as it is."""
        with writing("the report"):
            stream = self.out.file
            stream.write(visible(text if text.endswith("\n") else text + "\n"))
            stream.flush()

    def complain(self, message: str) -> None:
        """Prints a message on standard error, where there is one."""
        with suppress(OSError, ValueError):
            stream = standard_stream(stderr=True)
            stream.write(f"triptych: {visible(message)}\n")
            stream.flush()


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = standard_stream(stderr=stderr)
    # A stream that cannot encode a sign (×, µ) shows a question mark instead of failing.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    width = None if stream.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)
