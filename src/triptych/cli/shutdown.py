"""What Python does behind a script's last line: it waits for its threads, then calls what it gave to `atexit`."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Shutdown:
    """The threads and the `atexit` callbacks of a script, apart from those of the process that runs it."""

    def __init__(self, complain: Callable[[object, BaseException], None]) -> None:
        """`complain` gets a callback that failed, and its exception; Python goes on with the others."""
        self._complain = complain
        self._before = frozenset(threading.enumerate())
        self._callbacks: list[partial[object]] = []

    @contextmanager
    def recorded(self) -> Generator[None]:
        """What is given to `atexit` inside the `with` block is the script's."""
        kept = atexit.register, atexit.unregister
        atexit.register, atexit.unregister = self._register, self._unregister
        try:
            yield
        finally:
            atexit.register, atexit.unregister = kept

    def run(self) -> None:
        """Waits for the threads and calls the callbacks, the last one first."""
        while waiting := self._threads():
            # Executors give `threading` what makes their idle threads end; each takes being called once more.
            for call in reversed(getattr(threading, "_threading_atexits", ())):
                call()
            waiting[0].join()
        while self._callbacks:
            callback = self._callbacks.pop()
            try:
                callback()
            except BaseException as error:  # as Python does, which ends here for no exception
                self._complain(callback.func, error)

    def _threads(self) -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one not in self._before and not one.daemon]

    def _register(self, func: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Callable[_P, _T]:
        self._callbacks.append(partial(func, *args, **kwargs))
        return func

    def _unregister(self, func: Callable[..., object], /) -> None:
        self._callbacks = [one for one in self._callbacks if one.func != func]
        _UNREGISTER(func)


_UNREGISTER = atexit.unregister
