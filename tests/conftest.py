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
    """Half of the files test the code that a GPU kernel's first launches have, half the code of hot ones."""
    half = crc32(request.path.name.encode()) % 2
    monkeypatch.setenv("TRIPTYCH_OPTIMISE", ("hot", "always")[half])
