"""Work in a process of its own, so that what brings the process down is one more result."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Crash:
    """The process ended, or did not answer in time."""

    reason: str


class Child(Generic[Argument, Result]):
    """A process that calls one function again and again; it is started anew when it has ended."""

    def __init__(
        self, function: Callable[[Argument], Result], *, most_calls: int = 150, timeout_s: float = 240
    ) -> None:
        """`function` and what it takes and gives can be pickled. After `most_calls` another process goes on."""
        self.function, self.most_calls, self.timeout_s = function, most_calls, timeout_s
        self.calls = 0
        self.process: SpawnProcess | None = None
        self.connection: Connection | None = None

    def call(self, argument: Argument) -> Result | Crash:
        """What the function gives, or a `Crash`."""
        if self.calls >= self.most_calls:
            self.close()
        process, connection = self._running()
        self.calls += 1
        try:
            connection.send(argument)
            if connection.poll(self.timeout_s):
                return connection.recv()
            reason = f"no answer within {self.timeout_s} s"
        except (EOFError, OSError):
            process.join(10)
            reason = f"the process ended with {process.exitcode}"
        self.close()
        return Crash(reason)

    def _running(self) -> tuple[SpawnProcess, Connection]:
        if self.process is None or self.connection is None:
            ours, theirs = _SPAWN.Pipe()
            process = _SPAWN.Process(target=_serve, args=(theirs, self.function), daemon=True)
            process.start()
            theirs.close()
            self.process, self.connection, self.calls = process, ours, 0
        return self.process, self.connection

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.connection is not None:
            self.connection.close()
        self.process = self.connection = None


def _serve(connection: Connection, function: Callable[[Argument], Result]) -> None:
    while True:
        try:
            argument = connection.recv()
        except EOFError:
            return
        connection.send(function(argument))
