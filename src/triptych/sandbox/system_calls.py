"""Which system calls a task may make: a table, and the filter that libseccomp makes of it.

Whatever is not allowed fails with `ENOSYS`, as if the kernel did not have it: C libraries and compilers then take their
other way. There is no socket but a connected pair, no namespace, mount, key, trace, BPF, io_uring or shared memory by
name, and no memory file. Names that an architecture does not have allow nothing there.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.sandbox import system


@dataclass(frozen=True, slots=True)
class Only:
    """The call is allowed only with this argument, by its position from 0: `value` under `mask`."""

    argument: int
    value: int
    mask: int = (1 << 64) - 1


_NAMESPACES = 0x7E02_0000
"""Flags of `clone` that make namespaces (`clone3`, whose flags lie in memory, is not allowed)."""

ALWAYS: Mapping[str, str] = {
    "files": "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek open openat openat2 creat"
    " close close_range dup dup2 dup3 fcntl flock fsync fdatasync ftruncate truncate fallocate fadvise64"
    " readahead sendfile copy_file_range splice tee",
    "folders": "access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs getdents getdents64 getcwd"
    " chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat readlink"
    " readlinkat umask getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr",
    "memory": "brk mmap munmap mremap mprotect madvise msync mincore mlock munlock pkey_alloc pkey_free pkey_mprotect"
    " membarrier get_mempolicy",
    "processes": "fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp getsid"
    " setpgid setsid getuid geteuid getgid getegid getresuid getresgid getgroups capget getrlimit setrlimit getrusage"
    " times sysinfo uname getcpu getpriority sched_yield sched_getaffinity sched_setaffinity sched_getparam"
    " sched_getscheduler sched_get_priority_max sched_get_priority_min arch_prctl set_tid_address set_robust_list"
    " get_robust_list rseq futex futex_waitv restart_syscall",
    "signals": "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigpending rt_sigtimedwait sigaltstack alarm"
    " getitimer setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete pause",
    "waiting": "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2"
    " eventfd eventfd2 pipe pipe2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime",
    "time": "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time getrandom",
    "pairs of sockets": "sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt",
}
"""Allowed with any arguments, by what they are about."""

SOMETIMES: Sequence[tuple[str, tuple[Only, ...]]] = (
    ("clone", (Only(0, 0, _NAMESPACES),)),
    ("socketpair", (Only(0, 1), Only(1, 1, 0xF))),  # local streams: others can be sent to an address
    ("prlimit64", (Only(0, 0),)),  # of itself
    *(("prctl", (Only(0, option),)) for option in (3, 15, 16, 21, 23, 39, 0x53564D41)),  # names, and questions
    *(("ioctl", (Only(1, request),)) for request in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # questions
)
"""Allowed with these arguments; a call with several rows, with those of any."""

SIGNALS = "kill tkill tgkill"
"""Allowed where something else confines signals to the task's own processes."""
ATTRIBUTES = "chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat"
"""Allowed where all files outside of scratch are read-only: Landlock does not withhold these."""

_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF_0000, 0x8000_0000, 0x0005_0000 | errno.ENOSYS
_OTHER_ARCHITECTURE, _OPTIMISE = 2, 8
_MASKED_EQUAL = 7
_MOST_PROGRAM_BYTES = 1 << 16


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


class _Library:
    """The few functions of libseccomp that are used. Raises `OSError` where the library is not there."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._filter = ctypes.c_void_p(self._library.seccomp_init(_FAIL))
        self.call("seccomp_attr_set", _OTHER_ARCHITECTURE, ctypes.c_uint32(_KILL_PROCESS))

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function on the filter; they give a negative `errno`."""
        result = getattr(self._library, name)(self._filter, *arguments)
        if result < 0:
            raise OSError(-result, os.strerror(-result), name)

    def allow(self, name: str, *only: Only) -> None:
        """Allows a call, if this architecture has it."""
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        rows = [_Comparison(each.argument, _MASKED_EQUAL, each.mask, each.value) for each in only]
        comparisons = (_Comparison * len(rows))(*rows)
        self.call("seccomp_rule_add_array", ctypes.c_uint32(_ALLOW), number, ctypes.c_uint(len(rows)), comparisons)

    def program(self) -> bytes:
        """The filter as the kernel takes it; the library's own is freed."""
        descriptor = os.memfd_create("filter")
        try:
            self.call("seccomp_export_bpf", descriptor)
            return os.pread(descriptor, _MOST_PROGRAM_BYTES, 0)
        finally:
            os.close(descriptor)
            self._library.seccomp_release(self._filter)


def compile_filter(*also: str) -> bytes:
    """The filter as a program of the kernel; calls of `also` (`SIGNALS` …) are allowed too.

    Raises `OSError` where libseccomp is missing.
    """
    library = _Library()
    library.call("seccomp_attr_set", _OPTIMISE, ctypes.c_uint32(2))
    for names in (*ALWAYS.values(), *also):
        for name in names.split():
            library.allow(name)
    for name, only in SOMETIMES:
        library.allow(name, *only)
    return library.program()


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict(program: bytes) -> None:
    """Puts a filter on this thread, and on all that it will start, for good."""
    header = _Program(len(program) // 8, program)
    system.prctl(system.SET_SECCOMP, 2, ctypes.byref(header))
