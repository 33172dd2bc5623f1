"""Work that an interruption must not leave half done: on a thread of its own, since handlers run on the main one."""

from __future__ import annotations

import atexit
import os
import threading
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Never, TypeVar

T = TypeVar("T")
_TURN_S = 0.2
"""How long a wait lets a handler wait at most."""
_UNAWAITED: set[LockType] = set()
"""Held by functions that nobody but the end of the process waits for."""


def undisturbed(function: Callable[[], T]) -> T:
    """What a function gives or raises, which no signal's handler can interrupt.

    A library may lose an exception that comes inside of a `__del__`, or keep a lock that it had just taken. A handler
    that raises ends the wait at once; the function runs to its end, and what it gives is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    return beside(function)()


def beside(function: Callable[[], T]) -> Callable[[], T]:
    """Begins a function on a thread of its own, in the caller's context; what is given waits for its value or error.

    Unlike the pools of `concurrent.futures` after the program's last line too, when functions of `atexit` run.
    """
    context = copy_context()
    answers: SimpleQueue[Callable[[], T]] = SimpleQueue()

    def work() -> None:
        try:
            value = context.run(function)
        except BaseException as error:
            answers.put(_raising(error))
        else:
            answers.put(lambda: value)

    start_new_thread(work, ())
    return lambda: _next(answers)()


def _next(answers: SimpleQueue[T]) -> T:
    """The next answer. A signal that comes just before the wait does not end it: its handler runs at the next turn."""
    while True:
        try:
            return answers.get(timeout=_TURN_S)
        except Empty:
            continue


def unawaited(function: Callable[[], object]) -> None:
    """Begins a function that nobody waits for, but the end of the process; what it gives or raises is dropped.

    A thread inside a library that takes itself down, as LLVM does at the end, would crash.
    """
    held = allocate_lock()
    held.acquire()
    _UNAWAITED.add(held)

    def work() -> None:
        try:
            function()
        finally:
            _UNAWAITED.discard(held)
            held.release()

    try:
        beside(work)
    except BaseException:
        _UNAWAITED.discard(held)
        raise


def _wait_for_all() -> None:
    for held in tuple(_UNAWAITED):
        held.acquire()


atexit.register(_wait_for_all)
os.register_at_fork(after_in_child=_UNAWAITED.clear)  # a child has none of these threads


def _raising(error: BaseException) -> Callable[[], Never]:
    def raise_it() -> Never:
        raise error

    return raise_it
