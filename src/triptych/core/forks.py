"""Locks in a process that forks while other threads work: a child has none of these threads, who would unlock?"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

T = TypeVar("T")


class StateLock:
    """A re-entrant lock around Python's own objects, for `with`: whoever held it, a child finds it free.

    `with` calls what the two properties give, which is C: a signal's handler runs before it or after it. In methods of
    Python it could run, and raise, between taking the lock and entering the block, or before giving it back.
    """

    _forks: ClassVar[int] = 0
    """Those between the first process and this one."""

    def __init__(self) -> None:
        """Nobody holds it."""
        self._locks: dict[int, threading.RLock] = {}

    @property
    def __enter__(self) -> Callable[[], bool]:
        """Waits until no other thread holds it."""
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        """Gives it back."""
        return self._lock.__exit__

    @property
    def _lock(self) -> threading.RLock:
        """This process's, made in one step by whichever thread asks first."""
        return self._locks.get(StateLock._forks) or self._locks.setdefault(StateLock._forks, threading.RLock())

    @classmethod
    def renew_all(cls) -> None:
        """All are free, in a process that has one thread."""
        cls._forks += 1


class LazyProperty(Generic[T]):
    """A property that is computed when first asked for, and kept; `functools.cached_property` without its lock.

    Python 3.11 holds that lock while any object of the class computes: a child that was forked then would wait for it.
    Threads that ask at once all compute, and agree on what the first has kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        """Decorates the method that computes it."""
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        """Called by Python: what it is called."""
        self._name = name

    @overload
    def __get__(self, instance: None, _: type) -> Self: ...
    @overload
    def __get__(self, instance: object, _: type) -> T: ...
    def __get__(self, instance: object | None, _: type) -> Self | T:
        """Called by Python where the object has nothing kept yet; the class has the property itself."""
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))


def library_lock() -> threading.RLock:  # type: ignore[valid-type]
    """A re-entrant lock around a library's calls: forks, and the end of the process, wait until no thread is inside.

    A library's own locks and half-made structures would stay as they are in the child for ever; at the end it takes
    itself down, with whatever is being made.
    """
    lock = threading.RLock()
    atexit.register(_wait_for, lock)
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def _wait_for(lock: threading.RLock) -> None:
    with lock:
        pass


os.register_at_fork(after_in_child=StateLock.renew_all)
