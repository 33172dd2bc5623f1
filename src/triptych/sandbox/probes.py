"""Probes: each tries, in a task's own process, what one layer of the sandbox forbids, and tells whether it did.

They run before any code that nobody trusts, in a process that is confined like every task's (`layers.py`).
"""

from __future__ import annotations

import errno
import mmap
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from triptych.sandbox import system
from triptych.sandbox.outcome import Limits

LIMITS = Limits(30.0, 30.0, 1 << 24, 1 << 20, 8, 32, 1 << 16)
"""Of a task that probes: small, since it tries to exceed them."""
_LEAST_DESCRIPTOR = 4
"""Below are those that a task is given."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What the parent tells the probes."""

    user: int
    """The parent's."""
    private: str
    """A file that its owner alone may read, outside of all that is readable."""
    ipc: int
    """The number of the parent's namespace of System V objects."""
    variables: tuple[str, ...]
    """Names of the variables that a task's environment may have."""


def own_user(clues: Clues) -> bool:
    """The user that the machine knows this process by is not the parent's."""
    user = os.getuid()
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            rows = [[int(field) for field in line.split()] for line in file]
    except OSError:
        return user != clues.user
    outside = [below + user - first for first, below, count in rows if first <= user < first + count]
    return outside != [clues.user]


def capabilities(_: Clues) -> bool:
    """There are none, and no program can give any."""
    return not any(system.capabilities()) and system.prctl(system.GET_NO_NEW_PRIVILEGES) == 1


def files(clues: Clues) -> bool:
    """A private file outside is not there, and what is there cannot be written."""
    read_only = all(os.statvfs(path).f_flag & os.ST_RDONLY for path in ("/", __file__))
    return read_only and not os.path.lexists(clues.private)


def landlock(_: Clues) -> bool:
    """The root folder, which nothing grants, cannot be listed."""
    return _refused(lambda: os.listdir("/"), errno.EACCES)


def processes(_: Clues) -> bool:
    """The parent is not visible, and `/proc` has this process and the first of its namespace alone."""
    return os.getppid() == 0 and {name for name in os.listdir("/proc") if name.isdecimal()} <= {"1", str(os.getpid())}


def signals(_: Clues) -> bool:
    """The parent is not visible, or cannot be sent a signal."""
    return os.getppid() == 0 or _refused(lambda: os.kill(os.getppid(), 0), errno.EPERM, errno.ENOSYS)


def network(_: Clues) -> bool:
    """There is no interface but the one to itself."""
    with open("/proc/self/net/dev", encoding="ascii") as file:
        return [line.partition(":")[0].strip() for line in file if ":" in line] == ["lo"]


def ipc(clues: Clues) -> bool:
    """The namespace of System V objects and of message queues is not the parent's."""
    return os.stat("/proc/self/ns/ipc").st_ino != clues.ipc


def system_calls(_: Clues) -> bool:
    """A socket, a namespace and tracing are refused, as if the kernel did not know them."""
    tries: tuple[Callable[[], object], ...] = (
        socket.socket,
        lambda: system.unshare(system.NEW_USER),
        lambda: system.call("ptrace", 0, 0, 0, 0),
    )
    return all(_refused(each, errno.ENOSYS) for each in tries)


def scratch(_: Clues) -> bool:
    """The scratch folder is empty, and its file system as large as the limit says."""
    room = os.statvfs(".")
    return room.f_blocks * room.f_frsize <= LIMITS.scratch_bytes and not os.listdir(".")


def file_size(_: Clues) -> bool:
    """A file cannot become larger than the limit."""
    with open("large", "wb") as file:
        refused = _refused(lambda: os.ftruncate(file.fileno(), LIMITS.scratch_bytes + 1), errno.EFBIG)
    os.unlink("large")
    return refused


def process_limit(_: Clues) -> bool:
    """There is a limit, and with a lower one a thread, which counts as a process does, fails to start."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (1, most))
    try:
        threading.Thread(target=time.monotonic).start()
    except RuntimeError:
        return most != resource.RLIM_INFINITY
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    return False


def descriptors(_: Clues) -> bool:
    """None is open but those of a task, and there is a limit to how many can be."""
    most = max(LIMITS.open_files, 1 << 10)
    shut = all(_refused(lambda each=each: os.fstat(each), errno.EBADF) for each in range(_LEAST_DESCRIPTOR, most))
    return shut and _refused(lambda: os.dup2(0, LIMITS.open_files), errno.EBADF)


def memory(_: Clues) -> bool:
    """More memory than the limit is not given."""
    return _refused(lambda: mmap.mmap(-1, LIMITS.memory_bytes + 1, mmap.MAP_PRIVATE), errno.ENOMEM)


def cpu(_: Clues) -> bool:
    """The kernel has the limit of processor time."""
    return resource.getrlimit(resource.RLIMIT_CPU)[0] == LIMITS.cpu_s


def environment(clues: Clues) -> bool:
    """It has the sandbox's own variables alone."""
    return set(os.environ) <= set(clues.variables)


def debugging(_: Clues) -> bool:
    """Other processes of the same user may not look into this one."""
    return system.prctl(system.GET_DUMPABLE) == 0


def give_back(payload: bytes) -> bytes:
    """A task that returns what it is given."""
    return payload


def take_memory(_: bytes) -> bytes:
    """A task that takes more memory than `LIMITS` says in a way that no limit of a process counts, and waits."""
    with mmap.mmap(-1, LIMITS.memory_bytes + (1 << 20), mmap.MAP_SHARED) as shared:
        for offset in range(0, len(shared), mmap.PAGESIZE):
            shared[offset] = 1
        time.sleep(LIMITS.wall_s)
    return b""


def _refused(action: Callable[[], object], *numbers: int) -> bool:
    """Whether an action fails with one of these error numbers."""
    try:
        action()
    except OSError as error:
        return error.errno in numbers
    return False
