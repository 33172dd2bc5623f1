"""One sandbox for the tests of a file; after each of them it must be the same one, and idle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `sandboxes.py`, which is no test

from sandboxes import HERE, IDLE, SMALL, processes_of

from triptych.sandbox import End, Sandbox


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox(import_from=(HERE,), preload=("hostile", "prying"), limits=SMALL) as sandbox:
        assert sandbox.layers
        yield sandbox


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """The shared one, if the test leaves it unharmed: neither ended and started again, nor with a process too many."""
    before = processes_of(shared)
    assert len(before) == IDLE
    yield shared
    after = shared.run("hostile:echo", b"still there")
    assert (after.end, after.reply) == (End.REPLIED, b"still there")
    assert processes_of(shared) == before
