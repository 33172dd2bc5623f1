"""Work that makes many objects and no cycles, without the collector, which would go through all of them again."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Python's collector of cycles rests until the end, unless it rests anyway.

    What was made then counts as old: it is not gone through at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
