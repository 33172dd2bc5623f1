"""The processes of a task as `/proc` shows them: which there are, what they use, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KIB = 1024
_NANOSECOND = 1e-9


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes use at one time."""

    cpu_s: float
    """Processor time, of those that ended and were waited for too."""
    memory_bytes: int
    """Memory that is not a file's; what several share counts for each."""
    tasks: int
    """Processes and threads."""
    waited_s: float = 0.0
    """How long one of them was ready to run, and others had the processors: that for which it was longest."""


NOTHING = Usage(0.0, 0, 0)


def descendants() -> frozenset[int]:
    """All below this process, by the numbers that `/proc` has for them."""
    parents = dict(_parents())
    own = int(os.readlink("/proc/self"))
    found = {own}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return frozenset(found - {own})


def usage(processes: frozenset[int]) -> Usage:
    """What these processes use; those that have ended meanwhile use nothing."""
    cpu, memory, tasks, waited = 0, 0, 0, 0.0
    for process in processes:
        stat = _stat(process)
        if stat is not None:
            cpu += sum(int(field) for field in stat[11:15])
            tasks += int(stat[17])
            memory += _memory(process)
            waited = max(waited, _waited_s(process))
    return Usage(cpu / _TICKS_PER_S, memory, tasks, waited)


def end_all(spared: frozenset[int]) -> None:
    """Kills all below this process but those spared, until none is left, and reaps its own children among them.

    The first process of a namespace ends only when all in it are reaped: what it waits for may be this one's child.
    """
    while doomed := descendants() - spared:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in doomed:
                _signal(process, number)
        _reap()
    _reap()


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            stat = _stat(int(name))
            if stat is not None and stat[0] not in ("Z", "X"):
                yield int(name), int(stat[1])


def _stat(process: int) -> list[str] | None:
    """The fields of its `stat` from the state on; `None` where it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return None


def _memory(process: int) -> int:
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return 0
    return sum(int(line.split()[1]) * _KIB for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))


def _waited_s(process: int) -> float:
    """What its first thread has waited for a processor; nothing where the kernel does not count that."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:
            return int(file.read().split()[1]) * _NANOSECOND
    except (OSError, IndexError):
        return 0.0


def _signal(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.kill(process, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
