"""A warm pool: workers, each with two sandboxes that wait for candidates. For trainers, and for batches."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import LifoQueue
from threading import Event
from types import TracebackType
from typing import Self

from triptych.core.errors import UsageError
from triptych.core.settings import usable_cores
from triptych.judge.candidate import Candidate, Task
from triptych.judge.scoring import Score, score_candidate
from triptych.judge.workshop import Memory, Workshop


class Stopped(Exception):
    """The pool was closed before the candidate was judged: there is no verdict on it."""


class Pool:
    """Judges candidates, as many at a time as it has workers. Used from any thread; a context manager.

    A worker's sandboxes start with its first candidate, and stay. What is known of candidates all workers share. Scores
    do not depend on the number of workers.
    """

    def __init__(
        self, workers: int | None = None, *, require: frozenset[str] = frozenset(), memory: Memory | None = None
    ) -> None:
        """Nothing runs yet.

        Args:
            workers: how many candidates at a time; the number of usable cores where it is not said.
            require: layers of isolation without which nothing is judged.
            memory: what its workers share; it is the pool's own where none is given.

        Raises:
            UsageError: for less than one worker.
            UnknownName: for a layer that there is not.
        """
        number = usable_cores() if workers is None else workers
        if number < 1:
            raise UsageError(f"a pool of {number} workers", hint="1 or more")
        shared = memory or Memory()
        self._workshops = [Workshop(shared, require) for _ in range(number)]
        self._idle: LifoQueue[Workshop] = LifoQueue()  # the one that was used last: no more start than are needed
        for workshop in self._workshops:
            self._idle.put(workshop)
        self._threads = ThreadPoolExecutor(number, "triptych-judge")
        self._stopping = Event()

    def __enter__(self) -> Self:
        """The pool itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes it."""
        self.close()

    @property
    def workers(self) -> int:
        """How many candidates it judges at a time."""
        return len(self._workshops)

    def layers(self) -> tuple[str, ...]:
        """The layers of isolation that hold; starts a worker's sandboxes, where none runs.

        Raises:
            SandboxError: where some that are required do not.
        """
        with self._workshop() as workshop:
            return workshop.layers

    def score(self, candidate: Candidate, task: Task, *, baselines: bool = False) -> Score:
        """Judges a candidate, when a worker is free.

        Args:
            candidate: its source.
            task: what it is judged by.
            baselines: whether the reference kernel of the language is timed too, for speedups.

        Raises:
            Stopped: the pool was closed meanwhile.
            SandboxError: where a sandbox cannot be started, or not with the layers that are required.
        """
        with self._workshop() as workshop:
            if self._stopping.is_set():
                raise Stopped
            score = score_candidate(candidate, task, workshop, baselines=baselines)
            if self._stopping.is_set():  # its sandboxes may have been ended under it
                raise Stopped
            return score

    def submit(self, candidate: Candidate, task: Task, *, baselines: bool = False) -> Future[Score]:
        """The same in a thread of the pool."""
        return self._threads.submit(self.score, candidate, task, baselines=baselines)

    def close(self) -> None:
        """Ends all sandboxes. Who waits for a score gets `Stopped`."""
        self._stopping.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for workshop in self._workshops:
            workshop.stop()
        self._threads.shutdown(wait=True)
        for workshop in self._workshops:
            workshop.close()

    @contextmanager
    def _workshop(self) -> Generator[Workshop]:
        workshop = self._idle.get()
        try:
            yield workshop
        finally:
            self._idle.put(workshop)
