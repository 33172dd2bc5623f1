"""Standard output and standard error: everything that is printed goes through here."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triptych.core.errors import LaunchInterrupted, UsageError
from triptych.core.progress import listening

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""


@contextmanager
def interruptible() -> Generator[None]:
    """Ctrl-C becomes an error of ours, which `main` prints in one line; typer would have its own way with it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise LaunchInterrupted("interrupted") from stop


@contextmanager
def progress_bars() -> Generator[None]:
    """Long launches show a bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from triptych.report.progress import LaunchProgress

    console = _console(stderr=True)
    with listening(lambda kernel: LaunchProgress(kernel, console)):
        yield


class Terminal:
    """Prints. Colours and widths are for terminals; into a file or a pipe goes plain text of 80 columns."""

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
        return self.out.width

    def show(self, content: RenderableType) -> None:
        """Prints a table, a text or a group of them on standard output."""
        self.out.print(content)

    def say(self, text: str) -> None:
        """Prints text on standard output, as it is."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def complain(self, message: str) -> None:
        """Prints a message on standard error."""
        sys.stderr.write(f"triptych: {message}\n")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A stream that cannot encode a sign (×, µ) shows a question mark instead of failing.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return Console(file=stream, highlight=False, markup=False, emoji=False)


class JsonTarget:
    """Where `--json` goes: a file, or `-` for standard output."""

    def __init__(self, target: str) -> None:
        """Refuses a file that cannot be written before any work is done.

        Raises:
            UsageError: where the file's folder does not exist, or the target is a folder.
        """
        self.is_stdout = target == "-"
        self._path = Path(target)
        if not self.is_stdout and (self._path.is_dir() or not self._path.absolute().parent.is_dir()):
            raise UsageError(f"cannot write JSON to {target}", hint="--json takes a file in a folder that exists, or -")
        self._descriptor: int | None = None

    def reserve_stdout(self) -> None:
        """From now on whatever anyone prints goes to standard error, so that standard output holds JSON alone.

        It stays so until the process ends: what a script prints when Python shuts down is not JSON either.
        """
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def write(self, value: Mapping[str, Any]) -> None:
        """Writes the document.

        Raises:
            UsageError: where the file cannot be written.
        """
        from triptych.report import dumps

        text = dumps(value)
        if not self.is_stdout:
            try:
                self._path.write_text(text, encoding="utf-8")
            except OSError as problem:
                raise UsageError(f"cannot write JSON to {self._path}: {problem.strerror}") from problem
        elif self._descriptor is None:
            sys.stdout.write(text)
        else:
            with os.fdopen(self._descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            self._descriptor = None
