"""Progress bars for what takes long, on a terminal only: a launch, a batch of candidates."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

DELAY_S = 0.5
"""A launch that is done sooner shows nothing."""


class LaunchProgress:
    """A callback `(done blocks, all blocks)` that draws a bar once a launch has run for `delay_s`.

    Used as a context manager around one launch; on a console that is no terminal it does nothing.
    """

    def __init__(self, kernel: str, console: Console, delay_s: float = DELAY_S) -> None:
        """For a launch of `kernel`, on `console` (standard error's)."""
        self._kernel = kernel
        self._console = console
        self._delay_s = delay_s
        self._start = time.monotonic()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        """Starts the clock."""
        self._start = time.monotonic()
        return self

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` blocks have run."""
        if not self._console.is_terminal:
            return
        if self._shown is None:
            if time.monotonic() - self._start < self._delay_s:
                return
            self._shown = self._open(total)
        progress, task = self._shown
        progress.update(task, completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes the bar away."""
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None

    def _open(self, total: int) -> tuple[Progress, TaskID]:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        progress = Progress(*columns, console=self._console, transient=True)
        progress.start()
        return progress, progress.add_task(self._kernel, total=total)


class WorkProgress:
    """A callback `(done, all, news)` that draws a bar: the news are what happened last. A context manager."""

    def __init__(self, title: str, console: Console) -> None:
        """On `console` (standard error's)."""
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self._progress = Progress(*columns, TextColumn("{task.fields[news]}"), console=console)
        self._task = self._progress.add_task(title, total=None, news="")

    def __enter__(self) -> Self:
        """Shows it."""
        self._progress.start()
        return self

    def __call__(self, done: int, total: int, news: str) -> None:
        """So many of all are done."""
        self._progress.update(self._task, completed=done, total=total, news=news)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves it as it is."""
        self._progress.stop()
