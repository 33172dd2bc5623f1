"""A task's own process: it gives up all that is left to give up, runs the task, and writes down what it returned.

The reply lies in a memory file: a byte that says what it is, the length in 8 bytes, little end first, then the bytes.
What the task does to this process afterwards can change the reply and nothing else: a reply is a claim.
"""

from __future__ import annotations

import fcntl
import importlib
import mmap
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, Never

from triptych.sandbox import landlock, system, system_calls, view
from triptych.sandbox.ground import FILES, PROCESSES, Ground

HEADER_BYTES = 9
REPLY, TOO_LARGE, NO_MEMORY = b"R", b"L", b"M"
"""What is written down: what the task returned, that it is too long, that Python ran out of memory."""
_RAISED = 1
"""Exit status where the task raised an error, or could not be confined."""
_REPLY_DESCRIPTOR, _CONFINED_DESCRIPTOR = 4, 5
"""Until the room is mapped (the mapping has its own, the lowest that is free), and until all layers are there."""
_FIRST_MOVED = 16
_ADDRESSES_BYTES = 4 << 30
"""Addresses that libraries may reserve and not use, beyond the memory that a task may have."""


@dataclass(frozen=True, slots=True)
class Job:
    """One task and what it was sent."""

    task: str
    """`package.module:function`, which takes bytes and gives bytes."""
    payload: int
    reply: int
    errors: int
    confined: int
    """Where the process tells the zygote that it is confined, before it runs the task: a byte."""
    mounts: tuple[int, ...]
    """The descriptor of its namespace of mounts, where there are namespaces."""
    limits: dict[str, Any]
    others: int
    """Processes and threads that are not the task's and that the kernel counts with them."""


def run(job: Job, ground: Ground) -> Never:
    """Confines this process, runs the task, writes its reply and ends the process."""
    status = _RAISED
    try:
        payload, room = _confine(job, ground)
        try:
            _reply(room, _function(job.task)(payload))
            status = 0
        except MemoryError:
            _write(room, NO_MEMORY, 0, b"")
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        _leave(status)


def _leave(status: int) -> Never:
    """Ends the process at once: nothing that the task, or a library, wants done at the end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue
    os._exit(status)


def _function(name: str) -> Callable[[bytes], bytes]:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def _reply(room: mmap.mmap, reply: object) -> None:
    if not isinstance(reply, bytes):
        raise TypeError(f"a task returns bytes, this one returned {type(reply).__name__}")
    if HEADER_BYTES + len(reply) > len(room):
        _write(room, TOO_LARGE, len(reply), b"")
    else:
        _write(room, REPLY, len(reply), reply)


def _write(room: mmap.mmap, kind: bytes, length: int, reply: bytes) -> None:
    room[HEADER_BYTES : HEADER_BYTES + len(reply)] = reply
    room[:HEADER_BYTES] = kind + length.to_bytes(HEADER_BYTES - 1, "little")


def _confine(job: Job, ground: Ground) -> tuple[bytes, mmap.mmap]:
    """Every layer that the ground has, or an error: no task runs with less than the sandbox says.

    Gives the payload, and the room for the reply: a mapping, since a file's limits do not count there.
    """
    os.setsid()
    for namespace in job.mounts:
        system.enter(namespace, system.NEW_MOUNTS)
    os.chdir(ground.scratch)
    tempfile.tempdir = None
    payload = _read(job.payload)
    room = _keep_descriptors(job)
    system.prctl(system.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o077)
    _limit(job.limits, job.others)
    system.prctl(system.SET_DUMPABLE, 0)
    system.prctl(system.SET_NO_NEW_PRIVILEGES, 1)
    system.drop_capabilities()
    if ground.landlock_version:
        held = {"own_processes": PROCESSES in ground.held, "own_root": FILES in ground.held}
        landlock.restrict(view.rights(ground.readable, ground.scratch, **held))
    if ground.filter is not None:
        system_calls.restrict(ground.filter)
    os.write(_CONFINED_DESCRIPTOR, b"1")
    os.close(_CONFINED_DESCRIPTOR)
    return payload, room


def _read(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    parts: list[bytes] = []
    while size > 0:
        parts.append(os.pread(descriptor, size, sum(map(len, parts))))
        size -= len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _keep_descriptors(job: Job) -> mmap.mmap:
    """Leaves open 0, nothing to read, 1 and 2, where errors go, and that of the room for the reply, which it maps."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    kept = {0: nothing, 1: job.errors, 2: job.errors, _REPLY_DESCRIPTOR: job.reply, _CONFINED_DESCRIPTOR: job.confined}
    moved = {number: fcntl.fcntl(each, fcntl.F_DUPFD, _FIRST_MOVED) for number, each in kept.items()}
    os.closerange(0, _FIRST_MOVED)
    for number, descriptor in moved.items():
        os.dup2(descriptor, number)
    os.closerange(max(kept) + 1, os.sysconf("SC_OPEN_MAX"))
    room = mmap.mmap(_REPLY_DESCRIPTOR, 0)
    os.close(_REPLY_DESCRIPTOR)
    return room


def _limit(limits: dict[str, Any], others: int) -> None:
    with open("/proc/self/statm", "rb") as file:
        size, _, _, _, _, data, _ = (int(pages) * mmap.PAGESIZE for pages in file.read().split())
    cpu = ceil(limits["cpu_s"])
    memory = limits["memory_bytes"]
    count = limits["processes"] + others
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_DATA, data + memory, data + memory),
        (resource.RLIMIT_AS, size + 2 * memory + _ADDRESSES_BYTES, size + 2 * memory + _ADDRESSES_BYTES),
        (resource.RLIMIT_FSIZE, limits["scratch_bytes"], limits["scratch_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"]),
        (resource.RLIMIT_NPROC, count, count),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    ):
        resource.setrlimit(kind, (min(soft, _hard(kind)), min(hard, _hard(kind))))


def _hard(kind: int) -> int:
    most = resource.getrlimit(kind)[1]
    return most if most != resource.RLIM_INFINITY else (1 << 63) - 1
