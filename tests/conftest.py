"""What all tests share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from zlib import crc32

import pytest


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Generator[None]:
    """Ctrl-C as a terminal has it, in the processes that tests start too.

    A shell that runs a command in the background (`make test &` in a script) has it ignore Ctrl-C, and what a process
    ignores its children ignore as well.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def interrupted_at() -> Callable[[int, Callable[[], object]], bool]:
    """Raises in a call where a signal's handler may: when a function begins, and when one of C has returned.

    `interrupted_at(place, call)` counts these places from 1; False: the call has no such place.
    """

    def interrupted(place: int, call: Callable[[], object]) -> bool:
        left = place

        def look(_frame: object, event: str, _argument: object) -> None:
            nonlocal left
            left -= event in ("call", "c_return")
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(look)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        assert left > 0, f"the interruption at place {place} was lost"
        return False

    return interrupted


@pytest.fixture(autouse=True)
def either_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the files test the code of hot GPU kernels, the others that of first launches, made sooner."""
    is_third = crc32(request.path.name.encode()) % 3 == 0
    monkeypatch.setenv("TRIPTYCH_OPTIMISE", "always" if is_third else "hot")
