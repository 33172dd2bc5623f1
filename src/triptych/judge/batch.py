"""Batches: a folder of candidates, a file of scores, a line each. What stands in the file is not judged again."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triptych.core.errors import UsageError
from triptych.judge.candidate import Candidate, Task
from triptych.judge.pool import Pool, Stopped
from triptych.judge.reasons import JUDGE_ERROR
from triptych.judge.scoring import Score, judge_error

Encode = Callable[[Score], Mapping[str, Any]]
"""A score as JSON; it has `solution.key`, by which a later batch knows what was done."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    done: int
    total: int
    score: Score | None
    """The newest; None at the beginning, where `done` were found in the file."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a batch came to, with what was judged before."""

    failures: int
    """Candidates that did not pass, for whatever reason."""
    errors: int
    """Those among them on which the judge itself failed."""


@dataclass(slots=True)
class Results:
    """A file of scores that grows by whole lines: whatever ends the process, all lines but the last are whole."""

    path: Path
    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    """Of the candidates whose scores it has, by their keys; where one has several lines, that of the last."""
    errors: set[str] = field(default_factory=set[str])
    """The keys of those on which the judge itself failed, which are judged again."""

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
            key = str(row["solution"]["key"])
            self.verdicts[key] = str(row["verdict"])
            failed = row["reason"] is not None and row["reason"]["code"] == JUDGE_ERROR
        except (ValueError, LookupError, TypeError) as problem:
            raise UsageError(f"{self.path} has a line that is no score", hint="name another file") from problem
        (self.errors.add if failed else self.errors.discard)(key)

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
) -> Tally:
    """Judges all candidates that the file has no score of, and adds a line for each as soon as it is judged.

    Ctrl-C ends it at once; nothing that was judged is lost, and the same call goes on where it ended. Where the judge
    itself fails on a candidate, its line says so, the others are judged, and the next call tries it again.

    Raises:
        UsageError: where another batch writes to the file.
        SandboxError: where no sandbox can be started, or not with the layers that the pool requires.
        Stopped: the pool was closed meanwhile.
    """
    with results.alone():
        judged = results.verdicts.keys() - results.errors
        left = [one for one in candidates if task.identity(one) not in judged]
        if left:
            pool.layers()  # a machine without sandboxes ends the batch, before each candidate has a line that says so
        done = len(candidates) - len(left)
        tell(Progress(done, len(candidates), None))
        for score in _scores(left, task, pool):
            results.add(encode(score))
            done += 1
            tell(Progress(done, len(candidates), score))
    keys = [task.identity(one) for one in candidates]
    return Tally(sum(results.verdicts[key] != "passed" for key in keys), sum(key in results.errors for key in keys))


def _scores(candidates: Sequence[Candidate], task: Task, pool: Pool) -> Iterator[Score]:
    """Scores as they come; a few candidates wait in the pool, so that no worker does."""
    waiting = iter(candidates)
    running: dict[Future[Score], Candidate] = {}
    while True:
        for candidate in waiting:
            running[pool.submit(candidate, task)] = candidate
            if len(running) >= 2 * pool.workers:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            candidate = running.pop(future)
            try:
                score = future.result()
            except (Stopped, CancelledError):
                raise
            except Exception as error:
                score = judge_error(candidate, task, error)
            yield score
