"""Locks in a process that forks while other threads work: a child has none of these threads, who would unlock?"""

from __future__ import annotations

import os
import threading
import weakref
from typing import ClassVar


class StateLock:
    """A re-entrant lock around Python's own objects: whoever held it, a child finds it free."""

    _made: ClassVar[weakref.WeakSet[StateLock]] = weakref.WeakSet()

    def __init__(self) -> None:
        """Nobody holds it."""
        self._lock = threading.RLock()
        StateLock._made.add(self)

    def __enter__(self) -> None:
        """Waits until no other thread holds it."""
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Gives it back."""
        self._lock.release()

    @classmethod
    def renew_all(cls) -> None:
        """All are free, in a process that has one thread."""
        for lock in cls._made:
            lock._lock = threading.RLock()


def library_lock() -> threading.RLock:  # type: ignore[valid-type]
    """A re-entrant lock around a library's calls that outlives the process: forks wait until no thread is inside.

    A library's own locks and half-made structures would stay as they are in the child for ever.
    """
    lock = threading.RLock()
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


os.register_at_fork(after_in_child=StateLock.renew_all)
