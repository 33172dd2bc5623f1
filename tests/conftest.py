"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Generator

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
