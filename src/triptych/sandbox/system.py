"""Calls of the kernel that Python's standard library does not have, through the C library.

Each raises `OSError` where the kernel refuses or does not know it. Numbers are those of Linux's headers.
"""

from __future__ import annotations

import ctypes
import errno
import os

NEW_MOUNTS, NEW_CGROUP, NEW_HOSTNAME, NEW_IPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x1000_0000, 0x2000_0000, 0x4000_0000
"""Flags of `unshare` and `setns`: kinds of namespaces."""

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTION = 0x1, 0x2, 0x4, 0x8
BIND, RECURSIVE, PRIVATE, REMOUNT = 0x1000, 0x4000, 0x4_0000, 0x20
DETACH = 0x2
"""Flags of `mount` and `unmount`."""

SET_PARENT_DEATH_SIGNAL, SET_DUMPABLE, SET_SECCOMP = 1, 4, 22
SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVILEGES = 36, 38
GET_DUMPABLE, GET_NO_NEW_PRIVILEGES = 3, 39
"""Options of `prctl`."""

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR, LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 442, 444, 445, 446
"""Numbers of system calls, the same on every architecture."""
_CAPABILITY_VERSION, _CAPABILITY_WORDS = 0x2008_0522, 6

_LIBC = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """Calls a function of the C library that gives −1 and sets `errno` where it fails."""
    function = getattr(_LIBC, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = function(*passed)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def system_call(number: int, *arguments: object) -> int:
    """Calls the kernel itself."""
    return call("syscall", number, *arguments)


def unshare(kinds: int) -> None:
    """Moves this process to new namespaces of these kinds; its children, where the kind is `NEW_PROCESSES`."""
    call("unshare", kinds)


def enter(descriptor: int, kinds: int) -> None:
    """Moves this process to the namespace that a descriptor of `/proc/…/ns` stands for."""
    call("setns", descriptor, kinds)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts a file system, or what lies at `source` (`BIND`)."""
    call("mount", source.encode(), target.encode(), kind.encode(), flags, options.encode())


def restrict_mount(target: str, attributes: int) -> None:
    """Adds attributes (`READ_ONLY` …) to a mount and to all below it."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    system_call(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(wanted), ctypes.sizeof(wanted))


def change_root(folder: str) -> None:
    """Makes a mounted folder the root, and detaches what was there before."""
    os.chdir(folder)
    call("pivot_root", b".", b".")
    call("umount2", b".", DETACH)
    os.chdir("/")


def prctl(option: int, *arguments: object) -> int:
    """Changes a property of this process; arguments left out are zero."""
    return call("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def capabilities() -> tuple[int, ...]:
    """Words of bits: those of this thread that are in force, permitted and inheritable."""
    sets = (ctypes.c_uint32 * _CAPABILITY_WORDS)()
    call("capget", ctypes.byref(_this_thread()), ctypes.byref(sets))
    return tuple(sets)


def drop_capabilities() -> None:
    """Gives up all capabilities of this thread, for good."""
    call("capset", ctypes.byref(_this_thread()), ctypes.byref((ctypes.c_uint32 * _CAPABILITY_WORDS)()))


def _this_thread() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
