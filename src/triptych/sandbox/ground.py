"""What a sandbox stands on: the mechanisms that this machine let it have, and what each task is confined by.

A mechanism that the machine refuses is left out with its reason; whether one that is there does what it should is
another question, which the probes of `layers.py` answer.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from triptych.sandbox import landlock, system, system_calls, view

OWN_USER, USER_NAMESPACE, FILES, PROCESSES = "own user", "user namespace", "files", "processes"
NETWORK, IPC, HOSTNAME, LANDLOCK, SYSTEM_CALLS = "network", "ipc", "hostname", "landlock", "system calls"
MECHANISMS = (OWN_USER, USER_NAMESPACE, FILES, PROCESSES, NETWORK, IPC, HOSTNAME, LANDLOCK, SYSTEM_CALLS)
"""All that a machine may refuse; those of the same name are rows of `layers.py`."""

_SIMPLE = {NETWORK: system.NEW_NETWORK, IPC: system.NEW_IPC, HOSTNAME: system.NEW_HOSTNAME}
"""Namespaces that take nothing but being made."""
_USER_INSIDE = 1000
_NOBODY = 65534
_UNUSED_USERS = 0x7000_0000
"""From here on, user numbers that no distribution or container hands out."""


@dataclass(slots=True)
class Ground:
    """What holds for all tasks of a sandbox."""

    readable: tuple[str, ...]
    scratch: str
    left_out: frozenset[str] = frozenset()
    """Mechanisms that are not even tried."""
    held: set[str] = field(default_factory=set[str])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Why a mechanism is not there."""
    filter: bytes | None = None
    """The program for `system_calls.restrict`."""
    landlock_version: int = 0
    """0 where there is none."""
    tasks_of_others: int = 0
    """Processes and threads of other programs that the kernel counts with this sandbox's."""

    def attempt(self, name: str, function: Callable[[], object]) -> bool:
        """Sets up a mechanism, unless it is there, or the machine refuses; whether it is there then."""
        if name in self.held:
            return True
        if name in self.left_out:
            self.missing[name] = "left out"
            return False
        try:
            function()
        except OSError as error:
            self.missing[name] = f"{error.filename or 'the machine'}: {error.strerror or error}"
            return False
        self.held.add(name)
        self.missing.pop(name, None)
        return True


def isolate(folder: str, readable: tuple[str, ...], left_out: frozenset[str]) -> Ground:
    """Takes from this process, for good, all that the machine lets it give up; its next child begins the new world.

    Args:
        folder: An empty folder of its own: where the new root is put together, or where scratch lies without one.
        readable: What tasks may read.
        left_out: Mechanisms that are not tried.
    """
    ground = Ground(readable, os.path.join(folder, "scratch"), left_out)
    if os.geteuid() == 0:
        ground.attempt(FILES, lambda: _new_root(folder, readable))
        _attempt_simple(ground)
        ground.attempt(OWN_USER, lambda: _become_nobody(folder, readable, has_root=FILES in ground.held))
    if ground.attempt(USER_NAMESPACE, _new_users):
        _attempt_simple(ground)
        if ground.attempt(FILES, lambda: _new_root(folder, readable)):
            ground.attempt(PROCESSES, _new_processes)
    for name in (*_SIMPLE, FILES, PROCESSES):
        if name not in ground.held:
            ground.missing.setdefault(name, "it needs namespaces of users and of mounts")
    if FILES in ground.held:
        ground.scratch = view.SCRATCH
    if not {OWN_USER, USER_NAMESPACE} & ground.held:
        ground.tasks_of_others = _tasks_of(os.getuid())
    ground.attempt(LANDLOCK, lambda: setattr(ground, "landlock_version", landlock.version()))
    ground.attempt(SYSTEM_CALLS, lambda: setattr(ground, "filter", system_calls.compile_filter(*_also(ground))))
    return ground


def _also(ground: Ground) -> Iterator[str]:
    """System calls that something else makes harmless."""
    if PROCESSES in ground.held or ground.landlock_version >= landlock.SCOPE_SINCE:
        yield system_calls.SIGNALS
    if FILES in ground.held:
        yield system_calls.ATTRIBUTES


def _attempt_simple(ground: Ground) -> None:
    for name, kind in _SIMPLE.items():
        ground.attempt(name, lambda kind=kind: system.unshare(kind))


def _new_root(folder: str, readable: tuple[str, ...]) -> None:
    system.unshare(system.NEW_MOUNTS)
    view.build_root(folder, readable)


def _new_processes() -> None:
    """A namespace of processes for the next child, if each of its tasks can have one too, and a `/proc` of its own."""
    system.unshare(system.NEW_MOUNTS)
    trial = os.fork()
    if trial == 0:
        os._exit(0 if _can_nest() else 1)
    if os.waitpid(trial, 0)[1] != 0:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "mount of /proc")
    system.unshare(system.NEW_PROCESSES)


def _can_nest() -> bool:
    try:
        system.unshare(system.NEW_PROCESSES)
        first = os.fork()
        if first:
            return os.waitpid(first, 0)[1] == 0
        system.unshare(system.NEW_MOUNTS)
        view.mount_processes()
        view.mount_scratch(1 << 20)
    except OSError:
        return False
    return True


def _become_nobody(folder: str, readable: tuple[str, ...], *, has_root: bool) -> None:
    """A user that owns no file and no other process, if that user can read what tasks need."""
    needed = {Path(path) for path in (__file__, *readable)}
    if not has_root:
        needed.update(*(path.parents for path in needed), Path(folder).parents)
    for path in needed:
        if not _open_to_all(path):
            raise PermissionError(errno.EACCES, "only its owner can read it", str(path))
    unused = _UNUSED_USERS + os.getpid() + (time.monotonic_ns() & 0xF) * 0x40_0000
    user = unused if _is_mapped(unused) else _NOBODY
    if not has_root:
        os.chown(folder, user, user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    system.prctl(system.SET_DUMPABLE, 1)  # else its files in /proc, uid_map among them, stay root's


def _open_to_all(path: Path) -> bool:
    wanted = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & wanted == wanted


def _is_mapped(user: int) -> bool:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        rows = [tuple(int(field) for field in line.split()) for line in file]
    return any(first <= user < first + count for first, _, count in rows)


def _new_users() -> None:
    user, group = os.geteuid(), os.getegid()
    system.unshare(system.NEW_USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_USER_INSIDE} {user} 1"),
        ("gid_map", f"{_USER_INSIDE} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _tasks_of(user: int) -> int:
    count = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count
