"""The process that watches over a sandbox: small, trusted, and out of every task's reach.

It starts the zygote, makes namespaces for each task, watches what the task uses, and ends it. It ends itself, and with
it all that it started, as soon as its parent has ended or closed the channel.
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Never

from triptych.sandbox import processes, system, view, zygote
from triptych.sandbox.ground import PROCESSES, Ground
from triptych.sandbox.messages import Channel, Message
from triptych.sandbox.outcome import counted_s

_REAP_S = 1.0
"""Longest wait of a keeper for something to reap."""
_OWN_TASKS = 2
"""The launcher and the supervisor."""
_FIRST_LOOK_S, _MOST_BETWEEN_LOOKS_S = 0.004, 0.025


@dataclass(frozen=True, slots=True)
class Cell:
    """What one task lives in: its namespaces and the process that keeps them open, where there are namespaces."""

    keeper: int | None
    namespaces: tuple[int, ...]
    """Descriptors of the namespace of processes, then that of mounts."""
    spared: frozenset[int]
    """Processes of the sandbox that are not the task's, by the numbers of `/proc`."""

    def end(self) -> float:
        """Kills all of the task's processes; gives the processor time of those that nobody had waited for."""
        for namespace in self.namespaces:
            os.close(namespace)
        if self.keeper is None:
            processes.end_all(self.spared)
            return 0.0
        os.kill(self.keeper, signal.SIGKILL)
        while True:  # it ends only when all in its namespace are reaped, by this process where their parent has died
            process, _, used = os.wait4(-1, 0)
            if process == self.keeper:
                return used.ru_utime + used.ru_stime


class Supervisor:
    """Runs one task at a time."""

    def __init__(self, channel: Channel, ground: Ground) -> None:
        """`channel` leads to the parent."""
        self._channel = channel
        self._ground = ground
        self._zygote, self._other = Channel.pair()
        self._namespace = -1
        self._base = processes.NOTHING

    def serve(self, settings: Message) -> Never:
        """Starts the zygote, and runs what the parent asks for until it is gone."""
        self._start(settings)
        while True:
            self._channel.send(self._run(*self._receive(self._channel)))

    def _start(self, settings: Message) -> None:
        """Starts the zygote; tells the parent when it has imported what tasks need."""
        system.prctl(system.SET_CHILD_SUBREAPER, 1)
        if PROCESSES in self._ground.held:
            view.mount_processes()
            self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        if os.fork() == 0:
            self._zygote.close()
            self._channel.close()
            zygote.serve(self._other, self._namespace, self._ground, settings)
        self._other.close()
        answer, _ = self._receive(self._zygote)
        self._base = processes.usage(processes.descendants())
        self._channel.send({**answer, "missing": self._ground.missing})

    def _run(self, message: Message, descriptors: tuple[int, ...]) -> Message:
        try:
            cell = self._make_cell(message["limits"]["scratch_bytes"])
        except OSError as error:
            return {"status": None, "stopped": None, "cpu_s": 0.0, "error": f"no namespaces: {error}"}
        others = self._base.tasks + self._ground.tasks_of_others + _OWN_TASKS + len(cell.namespaces[:1])
        self._zygote.send({**message, "others": others}, (*descriptors, *cell.namespaces))
        for descriptor in descriptors:
            os.close(descriptor)
        stopped, seen_s = self._watch(message["limits"], cell)
        left_s = cell.end()
        answer, _ = self._receive(self._zygote)
        return {**answer, "stopped": stopped, "cpu_s": max(answer["cpu_s"] + left_s, seen_s)}

    def _watch(self, limits: Message, cell: Cell) -> tuple[str | None, float]:
        """Waits for the task's end; gives the limit that it exceeded, and the processor time that was seen."""
        began, pause, seen_s, waited_s = time.monotonic(), _FIRST_LOOK_S, 0.0, 0.0
        while not self._wait(self._zygote, pause):
            pause = min(pause * 1.5, _MOST_BETWEEN_LOOKS_S)
            used = processes.usage(processes.descendants() - cell.spared)
            seen_s, waited_s = max(seen_s, used.cpu_s), max(waited_s, used.waited_s)
            for limit, value in (
                ("wall_s", counted_s(time.monotonic() - began, waited_s)),
                ("cpu_s", seen_s),
                ("memory_bytes", used.memory_bytes - self._base.memory_bytes),
                ("processes", used.tasks),
            ):
                if value > limits[limit]:
                    return limit, seen_s
        return None, seen_s

    def _make_cell(self, scratch_bytes: int) -> Cell:
        if PROCESSES not in self._ground.held:
            zygote.renew_folder(self._ground.scratch)
            return Cell(None, (), processes.descendants())
        ours, theirs = Channel.pair()
        system.unshare(system.NEW_PROCESSES)
        try:
            keeper = os.fork()
            if keeper == 0:
                keep(theirs, scratch_bytes)
        finally:
            system.enter(self._namespace, system.NEW_PROCESSES)
        theirs.close()
        made = ours.receive()
        ours.close()
        if made is None:
            _, status = os.waitpid(keeper, 0)
            raise OSError(f"their first process ended with {status}")
        return Cell(keeper, made[1], processes.descendants())

    def _wait(self, channel: Channel, seconds: float | None = None) -> bool:
        """Waits for a message; `False` when the time is over. The parent's end ends everything."""
        ready, _, _ = select.select([channel, self._channel], [], [], seconds)
        if self._channel in ready and channel is not self._channel:
            self._end()
        return channel in ready

    def _receive(self, channel: Channel) -> tuple[Message, tuple[int, ...]]:
        self._wait(channel)
        received = channel.receive()
        return received if received is not None else self._end()

    def _end(self) -> Never:
        """Ends all that was started. As the first process of its namespace it takes the others with it anyway."""
        processes.end_all(frozenset())
        os._exit(0)


def keep(channel: Channel, scratch_bytes: int) -> Never:
    """The first process of a task's namespaces: makes them, hands them over, and reaps what the task leaves behind."""
    try:
        system.prctl(system.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        system.unshare(system.NEW_MOUNTS)
        view.mount_processes()
        view.mount_scratch(scratch_bytes)
        names = ("pid", "mnt")
        channel.send({}, tuple(os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names))
        system.prctl(system.SET_DUMPABLE, 0)
        system.drop_capabilities()
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        while True:
            _reap_or_wait()
    finally:
        os._exit(1)


def _reap_or_wait() -> None:
    try:
        os.wait()
    except ChildProcessError:
        signal.sigtimedwait([signal.SIGCHLD], _REAP_S)
