"""How far a long launch is: machines tell, whoever listens shows it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Report = Callable[[int, int], None]
"""(blocks done, blocks in all)"""

Listener = Callable[[str], AbstractContextManager[Report]]
"""For the kernel of that name, a context in which its progress can be reported."""

_listener: ContextVar[Listener | None] = ContextVar("triptych_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Has `listener` told of the launches inside a `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def _ignore(done: int, total: int) -> None:
    """Nobody listens."""


_UNHEARD = nullcontext[Report](_ignore)


def reporting(kernel: str) -> AbstractContextManager[Report]:
    """For a machine: the report to call while a kernel runs."""
    listener = _listener.get()
    return _UNHEARD if listener is None else listener(kernel)
