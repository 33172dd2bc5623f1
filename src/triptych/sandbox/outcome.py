"""What a task may use, and how its run ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

from triptych.core.errors import UsageError

MOST_STRETCH = 10
"""By which a busy machine may make a task's wall time longer than its limit."""


def counted_s(passed_s: float, waited_s: float) -> float:
    """Of the seconds since a task's start those that count for `wall_s`, so that a busy machine ends no task.

    Args:
        passed_s: since the start.
        waited_s: for which it was ready to run, and others had the processors.
    """
    return max(passed_s - waited_s, passed_s / MOST_STRETCH)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may use. Each is positive; whatever exceeds one ends the task, never the sandbox."""

    wall_s: float = 60.0
    """Seconds from the task's start to its end, but for those for which it waited for a processor (`counted_s`)."""
    cpu_s: float = 60.0
    """Seconds of processor time of all its processes together."""
    memory_bytes: int = 2 << 30
    """Memory that its processes hold beyond what was preloaded; what several of them share counts for each."""
    scratch_bytes: int = 256 << 20
    """Bytes in its scratch folder, which lies in memory; without the layer `scratch`, the size of its largest file."""
    processes: int = 64
    """Processes and threads at one time."""
    open_files: int = 256
    """File descriptors of each of its processes."""
    reply_bytes: int = 64 << 20
    """Length of what it returns."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for a limit that is not positive."""
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"a limit must be positive, but {field.name} is {getattr(self, field.name)}")


class End(Enum):
    """How a task ended."""

    REPLIED = "replied"
    """It returned bytes."""
    EXITED = "exited"
    """Its process ended without a reply: the task raised an error, or ended the process."""
    KILLED = "killed"
    """A signal ended its process: it crashed, or something in it sent the signal."""
    TIMED_OUT = "timed out"
    """It used more wall or processor time than allowed; `Outcome.detail` says which."""
    OUT_OF_MEMORY = "out of memory"
    """It held more memory than allowed, or its last error was Python's `MemoryError`."""
    TOO_MANY_PROCESSES = "too many processes"
    """It had more processes and threads than allowed; with the layer `process limit` they fail to start instead."""
    REPLY_TOO_LARGE = "reply too large"
    """It returned more bytes than allowed."""
    LOST = "lost"
    """The sandbox itself ended under it; the next task starts another one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run of a task ended. All that comes from the task is a claim: its reply, and the text in `detail`."""

    end: End
    reply: bytes | None
    """What the task returned, where `end` is `REPLIED`."""
    detail: str
    """The exit status, signal or limit, then the end of what it wrote to its standard error: for messages alone."""
    layers: tuple[str, ...]
    """The names of the layers (`triptych.sandbox.layers`) that were seen to hold when the sandbox started."""
    cpu_s: float
    """Processor time of its processes, in seconds."""

    def __post_init__(self) -> None:
        """A reply belongs to a task that replied, and to no other."""
        assert (self.reply is not None) == (self.end is End.REPLIED)
