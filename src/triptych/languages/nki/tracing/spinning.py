"""Stops the Python of a kernel that goes on and on without an instruction: nothing else would look at a `while True`.

A thread looks at the traces that run, a few times a second, and ends when there are none. It raises in the thread of a
trace that has worked for long without recording anything, as Ctrl-C would raise in the main thread.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from triptych.core.errors import BudgetExceeded
from triptych.core.settings import settings
from triptych.languages.calling import raised_at

_ITERATION_S = 1e-6
"""The time of a processor that an iteration of the budget stands for: the shortest of Python's loops take less."""
_LEAST_S = 0.5
"""What every kernel may take: a budget for small kernels of a GPU is no reason to stop the making of a table."""
_LOOK_S = 0.1
"""Between two looks."""


class _Stop(BaseException):
    """Raised in the thread of a trace that spins; no `except Exception` of the author's catches it."""


@dataclass(slots=True, eq=False)
class _Watched:
    """A trace that runs in a thread."""

    recorded: Callable[[], int]
    """How much it has recorded."""
    thread: int
    clock: int
    """That of the thread's time on processors, in seconds: it stands while the thread sleeps or waits."""
    limit_s: float
    since_s: float
    seen: int
    told: bool = False

    def look(self) -> None:
        """Stops it where it did nothing but work since it last recorded something; again later, if it goes on."""
        now, recorded = time.clock_gettime(self.clock), self.recorded()
        if recorded != self.seen:
            self.seen, self.since_s = recorded, now
        elif now - self.since_s > self.limit_s:
            self.told, self.since_s = True, now
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(_Stop))


class _Watch:
    """Those that run, and the thread that looks at them."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Nothing runs: a forked child has neither the looker nor the other threads."""
        # A plain lock: `with` takes and gives it back without a gap in which the exception could come.
        self.lock = threading.Lock()
        self.running: list[_Watched] = []
        self.looker: threading.Thread | None = None

    def enter(self, recorded: Callable[[], int]) -> _Watched:
        thread = threading.get_ident()
        clock = time.pthread_getcpuclockid(thread)
        limit_s = max(_LEAST_S, settings().budget * _ITERATION_S)
        watched = _Watched(recorded, thread, clock, limit_s, time.clock_gettime(clock), recorded())
        with self.lock:
            self.running.append(watched)
            if self.looker is None:
                self.looker = threading.Thread(target=self._run, name="triptych-nki-watch", daemon=True)
                self.looker.start()
        return watched

    def leave(self, watched: _Watched) -> None:
        """From here on nothing is raised on account of it."""
        with self.lock:
            if watched in self.running:
                self.running.remove(watched)

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            with self.lock:
                if not self.running:
                    self.looker = None
                    return
                for watched in self.running:
                    watched.look()


_WATCH = _Watch()


def _let_come() -> None:
    """Takes an exception that was sent and has not come: it comes where a loop turns at the latest.

    Taking it back (`PyThreadState_SetAsyncExc` with nothing) is no way: CPython notes that something was sent, forgets
    that only when an exception comes, and until then looks at every turn; under `sys.setprofile` 3.11 never goes on.
    """
    with suppress(_Stop):
        for _ in range(8):
            pass


@contextmanager
def stopped_where_it_spins(kernel: str, recorded: Callable[[], int]) -> Generator[None]:
    """Watches the Python of a kernel that runs inside; `recorded` says how much it has recorded so far.

    Raises:
        BudgetExceeded: in the line where it was, after as much of a processor's time as `budget` iterations of a loop
            at a microsecond each, half a second at least, in which it recorded nothing.
    """
    watched = _WATCH.enter(recorded)
    try:
        try:
            yield
        finally:
            _WATCH.leave(watched)
            if watched.told:
                _let_come()
    except _Stop as stop:
        _WATCH.leave(watched)  # the exception may have come while it left
        raise BudgetExceeded(
            f"kernel {kernel}: it ran for {watched.limit_s:g} s without an instruction or a tensor and was stopped",
            where=raised_at(stop),
            hint="does a loop of it ever end? TRIPTYCH_BUDGET raises the limit, by a second for a million",
            kernel=kernel,
        ) from None
