"""Messages between the processes of a sandbox: one JSON object each, with file descriptors beside it."""

from __future__ import annotations

import array
import contextlib
import json
import socket
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 1 << 16
"""Of one message."""
_MOST_DESCRIPTORS = 8

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Channel:
    """One end of a connection. Only trusted processes hold one: a task's process has closed it before it runs."""

    socket: socket.socket

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Both ends of a new connection, which keeps messages apart."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(one), cls(other)

    @classmethod
    def at(cls, descriptor: int) -> Channel:
        """The end that a process was started with."""
        return cls(socket.socket(fileno=descriptor))

    def send(self, message: Message, descriptors: tuple[int, ...] = ()) -> bool:
        """Sends a message; `False` where nobody has the other end."""
        try:
            socket.send_fds(self.socket, [json.dumps(message).encode()], list(descriptors), socket.MSG_NOSIGNAL)
        except ConnectionError:
            return False
        return True

    def receive(self) -> tuple[Message, tuple[int, ...]] | None:
        """The next message and its descriptors; `None` when the other end is closed."""
        flags = socket.MSG_CMSG_CLOEXEC
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self.socket.recvmsg(MOST_BYTES, space, flags)
        except ConnectionError:
            return None
        descriptors = array.array("i")
        for _, _, part in ancillary:
            descriptors.frombytes(part[: len(part) - len(part) % descriptors.itemsize])
        return (json.loads(data), tuple(descriptors)) if data else None

    def fileno(self) -> int:
        """For `select`."""
        return self.socket.fileno()

    def hang_up(self) -> None:
        """Ends the connection for both sides, and for whoever waits at this end."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes this end."""
        self.socket.close()
