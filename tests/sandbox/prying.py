"""Tasks that run inside a sandbox: what a hostile program would reach for outside of its own process.

Each tries what does no harm where it is refused; no test runs one outside a sandbox.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hostile import attempt, tried

_LIBC = ctypes.CDLL(None, use_errno=True)
_MIB = 1 << 20


def _c(name: str, *arguments: object) -> int:
    """A function of the C library, whose −1 becomes an error."""
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = getattr(_LIBC, name)(*passed)
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


# Others' processes.


def see_processes(_: bytes) -> bytes:
    return json.dumps(
        [sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()), os.getpid(), os.getppid()]
    ).encode()


def ask_processes(payload: bytes) -> bytes:
    """Signal 0, which does nothing, to each of these."""
    return tried((str(process), lambda process=process: os.kill(process, 0)) for process in json.loads(payload))


def kill_processes(payload: bytes) -> bytes:
    numbers = (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
    return tried(
        (f"{process} {number.name}", lambda process=process, number=number: os.kill(process, number))
        for process in json.loads(payload)
        for number in numbers
    )


def look_into(payload: bytes) -> bytes:
    """Memory, variables and files of processes, through `/proc`."""
    return tried(
        (f"{process}/{name}", lambda path=f"/proc/{process}/{name}": Path(path).read_bytes())
        for process in json.loads(payload)
        for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "root/etc/passwd", "cwd/x")
    )


def daemonise(payload: bytes) -> bytes:
    """A grandchild of its own session that stays."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.closerange(0, 1 << 10)
            time.sleep(60)
        os._exit(0)
    os.wait()
    if payload:
        time.sleep(60)
    return b"left one"


# Files.


def read_file(payload: bytes) -> bytes:
    return attempt(lambda: Path(payload.decode()).read_bytes()).encode()


def list_folder(payload: bytes) -> bytes:
    return json.dumps(sorted(os.listdir(payload.decode()))).encode()


def reach_file(payload: bytes) -> bytes:
    """All ways to a file that is not granted."""
    path = payload.decode()

    def through(name: str, make: Callable[[str, str], None]) -> None:
        make(path, name)
        Path(name).read_bytes()

    return tried(
        (
            ("open", lambda: Path(path).read_bytes()),
            ("symbolic link", lambda: through("soft", os.symlink)),
            ("hard link", lambda: through("hard", os.link)),
            ("rename", lambda: through("moved", os.rename)),
            ("list its folder", lambda: os.listdir(os.path.dirname(path))),
            ("root of 1", lambda: Path(f"/proc/1/root{path}").read_bytes()),
            ("own root", lambda: Path(f"/proc/self/root{path}").read_bytes()),
            ("up", lambda: Path("../" * 20 + path.lstrip("/")).read_bytes()),
            ("write", lambda: Path(path).write_bytes(b"changed")),
            ("append", lambda: os.close(os.open(path, os.O_WRONLY | os.O_APPEND))),
            ("remove", lambda: os.unlink(path)),
            ("truncate", lambda: os.truncate(path, 0)),
            ("mode", lambda: os.chmod(path, 0o777)),
            ("beside", lambda: Path(path + ".new").write_bytes(b"new")),
        )
    )


def write_readable(payload: bytes) -> bytes:
    """Changes to a folder that may be read, and to the system's."""
    folder = payload.decode()
    return tried(
        (
            ("create", lambda: Path(folder, "new").write_bytes(b"")),
            ("make a folder", lambda: os.mkdir(os.path.join(folder, "new"))),
            ("write this file", lambda: os.close(os.open(__file__, os.O_WRONLY))),
            ("move this file", lambda: os.rename(__file__, "moved.py")),
            ("touch this file", lambda: os.utime(__file__)),
            ("write the library", lambda: os.close(os.open(os.__file__, os.O_WRONLY))),
            ("the root", lambda: Path("/new").write_bytes(b"")),
            ("shared memory", lambda: Path("/dev/shm/new").write_bytes(b"")),
            ("a terminal", lambda: os.close(os.open("/dev/tty", os.O_RDWR))),
            ("a setting", lambda: Path("/proc/sys/kernel/hostname").write_text("x", "utf-8")),
            ("a device", lambda: os.mknod("device", 0o20666, os.makedev(1, 1))),
        )
    )


def execute_scratch(_: bytes) -> bytes:
    """A program of its own."""
    with open("program", "wb") as file:
        file.write(Path(sys.executable).resolve().read_bytes()[:_MIB])
    os.chmod("program", 0o755)
    return attempt(lambda: os.execv("program", ["program"])).encode()


# The network.


def connect(payload: bytes) -> bytes:
    """TCP and UDP to a port of this host, and an abstract socket."""
    port, name = json.loads(payload)

    def tcp() -> None:
        with socket.socket() as one:
            one.settimeout(1)
            one.connect(("127.0.0.1", port))

    def udp() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as one:
            one.sendto(b"x", ("127.0.0.1", port))

    def abstract() -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("\0" + name)

    def datagram() -> None:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with one, other:
            one.sendto(b"x", "\0" + name + " datagram")

    def netlink() -> None:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()

    def packet() -> None:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()

    return tried((f.__name__, f) for f in (tcp, udp, abstract, datagram, netlink, packet))


def socket_pair(payload: bytes) -> bytes:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(payload)
        return other.recv(100)


# The kernel.


def make_calls(payload: bytes) -> bytes:
    """System calls by number, with arguments that do no harm where they are allowed."""
    return tried(
        (name, lambda number=number: _c("syscall", number, 0, 0, 0, 0, 0, 0)) for name, number in json.loads(payload)
    )


def make_namespaces(payload: bytes) -> bytes:
    """By `clone`, whose flags are the payload."""

    def clone(flags: int) -> None:
        child = _c("syscall", int(payload), flags | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    return tried((hex(1 << bit), lambda bit=bit: clone(1 << bit)) for bit in (17, 25, 26, 27, 28, 29, 30))


def other_architecture(_: bytes) -> bytes:
    """`getpid` as 32-bit programs call it: mov eax, 20; int 0x80; ret."""
    with mmap.mmap(
        -1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    ) as code:
        code[:8] = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
        function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        return str(function()).encode()


def gain_rights(_: bytes) -> bytes:
    return tried(
        (
            ("setuid", lambda: os.setuid(0)),
            ("setgid", lambda: os.setgid(0)),
            ("setgroups", lambda: os.setgroups([0])),
            ("chroot", lambda: os.chroot("/")),
            ("nice", lambda: os.nice(-5)),
            ("dumpable", lambda: _c("prctl", 4, 1, 0, 0, 0)),
            ("ambient", lambda: _c("prctl", 47, 2, 1, 0, 0)),
        )
    )
