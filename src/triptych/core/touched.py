"""Which memory a launch loaded and stored, storage by storage: machines note it for whoever asks while it runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import Storage

Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What a launch touched of one storage; atomics count as stores."""

    storage: Storage
    unit: int
    """How many bytes a mark stands for: a pair of sectors (64) on a GPU, a byte on a NeuronCore."""
    loaded: Marks
    """A mark for each unit from that on in which the storage begins; units begin at multiples of their size."""
    stored: Marks
    """Likewise."""

    @property
    def loaded_bytes(self) -> Marks:
        """The storage's bytes that lie in units of which something was loaded."""
        return self._spread(self.loaded)

    @property
    def stored_bytes(self) -> Marks:
        """Likewise, stored."""
        return self._spread(self.stored)

    def _spread(self, marks: Marks) -> Marks:
        begin = self.storage.address % self.unit
        return np.repeat(marks, self.unit)[begin : begin + self.storage.size]


_noting: ContextVar[bool] = ContextVar("triptych_noting_touched", default=False)


def is_noting_touched() -> bool:
    """Whether somebody here wants to know what launches touch: machines look, and leave it out where nobody does."""
    return _noting.get()


@contextmanager
def noting_touched() -> Generator[None]:
    """The records of the launches of a `with` block say what they touched."""
    token = _noting.set(True)
    try:
        yield
    finally:
        _noting.reset(token)
