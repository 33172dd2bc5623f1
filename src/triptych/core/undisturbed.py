"""Work that an interruption must not leave half done: on a thread of its own, since handlers run on the main one."""

from __future__ import annotations

import threading
from _thread import start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Never, TypeVar

T = TypeVar("T")


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
    return lambda: answers.get()()


def _raising(error: BaseException) -> Callable[[], Never]:
    def raise_it() -> Never:
        raise error

    return raise_it
