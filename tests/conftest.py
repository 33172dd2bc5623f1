"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Generator
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


@pytest.fixture(autouse=True)
def either_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the files test the code of hot GPU kernels, the others that of first launches, made sooner."""
    is_third = crc32(request.path.name.encode()) % 3 == 0
    monkeypatch.setenv("TRIPTYCH_OPTIMISE", "always" if is_third else "hot")
