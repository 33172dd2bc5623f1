"""Python's collector of cycles, which work that makes many objects and few cycles is to do without."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

_off = False
"""Whether it is switched off by us, and not on again."""


@contextmanager
def uncollected() -> Generator[None]:
    """No cycles are looked for meanwhile; nothing changes where the program has switched that off itself.

    The collector visits the objects of the whole process again and again while new ones are made: a compiler that makes
    a hundred thousand spends a tenth of its time there. Of threads that do without it at the same time the first to
    come switches it on again when it goes, which costs the others no more than they would have saved. What was made
    meanwhile counts as old: it is not gone through at once.
    """
    global _off
    switched = gc.isenabled()
    if switched:
        gc.disable()
        _off = True
    try:
        yield
    finally:
        if switched:
            _off = False
            if not gc.get_freeze_count():  # what the program itself has frozen stays so
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _switch_on() -> None:
    """In a process that was forked meanwhile, which has not the thread that would."""
    global _off
    if _off:
        _off = False
        gc.enable()


os.register_at_fork(after_in_child=_switch_on)
