"""What goes between the parent and a task: bytes that cannot change, room for a reply, and how the task ended.

Nothing here is taken from a task without a bound: its reply lies in memory of a fixed size, and of what it writes to
its standard error only the end is kept.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
from io import FileIO

from triptych.sandbox.messages import Channel, Message
from triptych.sandbox.outcome import End, Limits, Outcome
from triptych.sandbox.task import HEADER_BYTES, NO_MEMORY, REPLY, TOO_LARGE

_TAIL_BYTES = 1024
"""Of what a task writes to its standard error: the end that is kept."""
_MOST_ERROR_BYTES = 8 << 20
"""Of what a task writes to its standard error: nobody reads more, and writing fails."""
_SIZE_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_STOPPED = {
    "memory_bytes": End.OUT_OF_MEMORY,
    "processes": End.TOO_MANY_PROCESSES,
    "wall_s": End.TIMED_OUT,
    "cpu_s": End.TIMED_OUT,
}
"""By the limit that a task exceeded."""


def sealed(payload: bytes) -> int:
    """A descriptor of bytes that nobody can change."""
    descriptor = os.memfd_create("payload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    written, view = 0, memoryview(payload)
    while written < len(payload):
        written += os.pwrite(descriptor, view[written:], written)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | _SIZE_SEALS)
    return descriptor


def room(limits: Limits) -> int:
    """A descriptor of memory for a reply, which never becomes larger or smaller."""
    descriptor = os.memfd_create("reply", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, HEADER_BYTES + limits.reply_bytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SIZE_SEALS)
    return descriptor


def wait(channel: Channel, errors: FileIO, seconds: float) -> tuple[Message | None, bytes]:
    """What the sandbox says of the task's end, `None` where it does not, and the end of what the task wrote."""
    tail, count, until = b"", 0, time.monotonic() + seconds
    open_pipes = [errors]
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([channel, *open_pipes], [], [], left)
        if errors in ready:
            text = errors.read(1 << 16)
            tail, count = (tail + text)[-_TAIL_BYTES:], count + len(text)
            if not text or count > _MOST_ERROR_BYTES:
                open_pipes.clear()
                errors.close()
        elif ready:
            received = channel.receive()
            return received and received[0], tail
    return None, tail


def outcome(answer: Message | None, reply: int, tail: bytes, limits: Limits, held: tuple[str, ...]) -> Outcome:
    """How the task ended, by what the sandbox said of it (`None`: nothing) and what lies in the room for its reply."""
    answer = answer or {"status": None, "stopped": None, "cpu_s": 0.0, "error": "the sandbox ended"}
    status, stopped, got = answer["status"], answer["stopped"], None
    if stopped is not None:
        end, said = _STOPPED[stopped], f"it exceeded {stopped} = {getattr(limits, stopped)}"
    elif status is None:
        end, said = End.LOST, answer["error"]
    elif os.WIFSIGNALED(status):
        end, said = _killed(os.WTERMSIG(status), limits)
    else:
        end, said, got = _exited(os.WEXITSTATUS(status), reply, limits)
    detail = "\n".join(part for part in (said, _printable(tail).strip()) if part)
    return Outcome(end, got, detail, held, answer["cpu_s"])


def _printable(text: bytes) -> str:
    """Text that does nothing to a terminal."""
    decoded = text.decode("utf-8", "replace")
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in decoded)


def _killed(number: int, limits: Limits) -> tuple[End, str]:
    if number == signal.SIGXCPU:
        return End.TIMED_OUT, f"it exceeded cpu_s = {limits.cpu_s}"
    return End.KILLED, signal.strsignal(number) or f"signal {number}"


def _exited(status: int, reply: int, limits: Limits) -> tuple[End, str, bytes | None]:
    header = os.pread(reply, HEADER_BYTES, 0)
    kind, length = header[:1], int.from_bytes(header[1:], "little")
    if kind == NO_MEMORY:
        return End.OUT_OF_MEMORY, "MemoryError", None
    if status != 0 or kind not in (REPLY, TOO_LARGE):
        return End.EXITED, f"exit status {status}" + ("" if status else ", without a reply"), None
    if kind == TOO_LARGE or length > limits.reply_bytes:
        return End.REPLY_TOO_LARGE, f"it returned {length} bytes, reply_bytes = {limits.reply_bytes}", None
    return End.REPLIED, "", os.pread(reply, length, HEADER_BYTES)
