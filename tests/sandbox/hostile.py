"""Tasks that run inside a sandbox: what a hostile program would do. Every loop is bounded, whatever holds it up.

Each gives bytes: JSON that says what it could do and what it could not. No test runs one outside a sandbox.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import mmap
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_MIB = 1 << 20


def echo(payload: bytes) -> bytes:
    return payload


def attempt(action: Callable[[], object]) -> str:
    """The name of the error that an action ends with, or `done`."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done"


def tried(actions: Iterable[tuple[str, Callable[[], object]]]) -> bytes:
    return json.dumps({name: attempt(action) for name, action in actions}).encode()


# What a well-behaved task sees.


def surroundings(_: bytes) -> bytes:
    return json.dumps(
        {
            "environment": sorted(os.environ),
            "folder": os.getcwd(),
            "files": os.listdir("."),
            "input": os.read(0, 1).decode(),
            "descriptors": [
                number for number in range(256) if attempt(lambda number=number: os.fstat(number)) == "done"
            ],
            "user": os.getuid(),
            "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ("numpy", "pytest")),
            "hashed": hash("a string"),
        }
    ).encode()


def leave_files(_: bytes) -> bytes:
    Path("left").write_text("behind", "utf-8")
    os.mkdir("folder", 0)
    return b""


def complain(payload: bytes) -> bytes:
    raise ValueError(payload.decode())


def complain_in_colour(_: bytes) -> bytes:
    os.write(2, b"\x1b]0;title\x07\x1b[31mred\xff\n\tline")
    os._exit(1)


def no_bytes(_: bytes) -> str:
    return "text"


def digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


def patch_modules(_: bytes) -> bytes:
    sys.modules["json"] = sys.modules["os"]
    os.environ["PATCHED"] = "1"
    return b""


def no_memory(_: bytes) -> bytes:
    raise MemoryError


# How a process can end.


def end_with(payload: bytes) -> bytes:
    os._exit(int(payload))


def end_by(payload: bytes) -> bytes:
    os.kill(os.getpid(), int(payload))
    time.sleep(5)
    return b""


def abort(_: bytes) -> bytes:
    os.abort()


def interrupt(_: bytes) -> bytes:
    return end_by(str(int(signal.SIGINT)).encode())


def crash(_: bytes) -> bytes:
    return ctypes.string_at(8)


def sleep(payload: bytes) -> bytes:
    time.sleep(float(payload))
    return b"awake"


def spin(_: bytes) -> bytes:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pass
    return b""


def spin_in_all(payload: bytes) -> bytes:
    """Several processes, none of which uses much."""
    for _ in range(int(payload)):
        if os.fork() == 0:
            spin(b"")
    return spin(b"")


# Taking more than allowed.


def fork_many(payload: bytes) -> bytes:
    """As many sleeping processes as there can be, and no more than asked for."""
    count = 0
    for _ in range(int(payload)):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            time.sleep(10)
            os._exit(0)
        count += 1
    time.sleep(0.1)  # several looks of who watches
    return str(count).encode()


def fork_tree(payload: bytes) -> bytes:
    """Each process forks: at most 2 to the power of the payload."""
    for _ in range(int(payload)):
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
    time.sleep(10)
    os._exit(0)


def start_threads(payload: bytes) -> bytes:
    done = threading.Event()
    threading.stack_size(1 << 16)
    threads = [threading.Thread(target=done.wait) for _ in range(int(payload))]
    count = 0
    try:
        for thread in threads:
            thread.start()
            count += 1
    except RuntimeError:
        pass
    done.set()
    return str(count).encode()


def take_private(payload: bytes) -> bytes:
    return str(len(bytearray(int(payload)))).encode()


def take_shared(payload: bytes) -> bytes:
    with mmap.mmap(-1, int(payload)) as memory:
        for offset in range(0, len(memory), mmap.PAGESIZE):
            memory[offset] = 1
        time.sleep(10)
    return b"kept"


def take_in_all(payload: bytes) -> bytes:
    """Four processes that each take a part."""
    for _ in range(3):
        if os.fork() == 0:
            break
    kept = bytearray(int(payload))
    kept[:: mmap.PAGESIZE] = b"\1" * len(kept[:: mmap.PAGESIZE])
    time.sleep(10)
    return b"kept"


def fill_disk(_: bytes) -> bytes:
    """Files of a mebibyte, 64 at most."""
    written, why = 0, "done"
    for number in range(64):
        with open(f"file {number}", "wb", buffering=0) as file:
            try:
                count = file.write(bytes(_MIB))
            except OSError as error:
                why = errno.errorcode[error.errno or 0]
                break
        written += count
        if count < _MIB:
            why = "short"
            break
    return json.dumps([written, why]).encode()


def large_file(payload: bytes) -> bytes:
    with open("large", "wb") as file:
        return attempt(lambda: os.ftruncate(file.fileno(), int(payload))).encode()


def many_files(_: bytes) -> bytes:
    count = 0
    try:
        for number in range(1 << 15):
            os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY))
            count += 1
    except OSError:
        pass
    return str(count).encode()


def open_many(_: bytes) -> bytes:
    count = 0
    try:
        for _number in range(1 << 12):
            os.dup(0)
            count += 1
    except OSError:
        pass
    return str(count).encode()


def large_reply(payload: bytes) -> bytes:
    return bytes(int(payload))


def large_errors(payload: bytes) -> bytes:
    """Mebibytes to the standard error; gives how many went."""
    for number in range(int(payload)):
        try:
            os.write(2, b"x" * _MIB)
        except OSError:
            return str(number).encode()
    return payload


def raise_limits(_: bytes) -> bytes:
    kinds = {name: getattr(resource, name) for name in ("RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_CPU", "RLIMIT_NOFILE")}

    def more(kind: int) -> None:
        try:
            resource.setrlimit(kind, (1 << 40, 1 << 40))
        except ValueError:
            raise PermissionError(errno.EPERM, "limit") from None

    return tried((name, lambda kind=kind: more(kind)) for name, kind in kinds.items())


# The channel.


def write_reply(payload: bytes) -> bytes:
    """Whatever bytes in the place of a reply, then the process's end."""
    with mmap.mmap(3, os.fstat(3).st_size) as memory:
        memory[: len(payload)] = payload
    os._exit(0)


def resize_reply(payload: bytes) -> bytes:
    return tried(
        (("ftruncate", lambda: os.ftruncate(3, int(payload))), ("write", lambda: os.pwrite(3, b"x", int(payload))))
    )


def close_everything(_: bytes) -> bytes:
    os.closerange(0, 1 << 10)
    return b"nobody will see this"


def use_descriptors(payload: bytes) -> bytes:
    """Opens again, writes to and reads from all that is open."""
    names = os.listdir("/proc/self/fd")
    actions: list[tuple[str, Callable[[], object]]] = []
    for name in names:
        path = f"/proc/self/fd/{name}"
        actions.append((f"{name} {_link(path)}", lambda path=path: os.close(os.open(path, os.O_RDWR))))
    return tried(actions)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
