"""Batches: a folder of candidates, a file of scores, a line each. What stands in the file is not judged again."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triptych.core.errors import UsageError
from triptych.judge.candidate import Candidate, Task
from triptych.judge.pool import Pool
from triptych.judge.scoring import Score

Encode = Callable[[Score], Mapping[str, Any]]
"""A score as JSON; it has `solution.key`, by which a later batch knows what was done."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    done: int
    total: int
    score: Score | None
    """The newest; None at the beginning, where `done` were found in the file."""


@dataclass(slots=True)
class Results:
    """A file of scores that grows by whole lines: whatever ends the process, all lines but the last are whole."""

    path: Path
    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    """Of the candidates whose scores it has, by their keys."""

    def __post_init__(self) -> None:
        """Reads what is there, and cuts off a last line that was not written to its end.

        Raises:
            UsageError: where the file cannot be read or written, or is none of scores.
        """
        try:
            with self.path.open("ab+") as file:
                file.seek(0)
                end = 0
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._note(line)
                    end += len(line)
                file.truncate(end)
        except OSError as problem:
            raise UsageError(f"cannot write scores to {self.path}: {problem.strerror}") from problem

    def _note(self, line: bytes) -> None:
        try:
            row: Any = json.loads(line)
            self.verdicts[str(row["solution"]["key"])] = str(row["verdict"])
        except (ValueError, LookupError, TypeError) as problem:
            raise UsageError(f"{self.path} has a line that is no score", hint="name another file") from problem

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a line, and has it written to the disk."""
        text = json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"
        with self.path.open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        self._note(text.encode())

    @contextmanager
    def alone(self) -> Generator[None]:
        """Nobody else adds to the file meanwhile.

        Raises:
            UsageError: where somebody does.
        """
        with self.path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                raise UsageError(f"another batch writes to {self.path}") from problem
            yield


def candidates_in(folder: Path, format: str = "solution") -> tuple[Candidate, ...]:
    """The Python files of a folder and those below it, in the order of their names, which are relative to it.

    Raises:
        UsageError: where there are none, or one cannot be read.
    """
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    if not paths:
        raise UsageError(f"{folder} has no Python files", hint="name a file, or a folder of candidates")
    try:
        found = [(path, Candidate.read(path, format)) for path in paths]
    except OSError as problem:
        raise UsageError(f"cannot read a candidate: {problem}") from problem
    return tuple(Candidate(one.source, str(path.relative_to(folder)), format) for path, one in found)


def score_all(
    candidates: Sequence[Candidate],
    task: Task,
    pool: Pool,
    results: Results,
    encode: Encode,
    tell: Callable[[Progress], None],
) -> int:
    """Judges all candidates that the file has no score of, and adds a line for each as soon as it is judged.

    Ctrl-C ends it at once; nothing that was judged is lost, and the same call goes on where it ended.

    Returns:
        How many did not pass, now or before.
    """
    with results.alone():
        left = [one for one in candidates if task.identity(one) not in results.verdicts]
        done = len(candidates) - len(left)
        tell(Progress(done, len(candidates), None))
        for score in _scores(left, task, pool):
            results.add(encode(score))
            done += 1
            tell(Progress(done, len(candidates), score))
    return sum(results.verdicts[task.identity(one)] != "passed" for one in candidates)


def _scores(candidates: Sequence[Candidate], task: Task, pool: Pool) -> Iterator[Score]:
    """Scores as they come; a few candidates wait in the pool, so that no worker does."""
    waiting = iter(candidates)
    running: set[Future[Score]] = set()
    while True:
        for candidate in waiting:
            running.add(pool.submit(candidate, task))
            if len(running) >= 2 * pool.workers:
                break
        if not running:
            return
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            yield future.result()
