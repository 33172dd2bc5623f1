"""Which bytes of HBM a launch touched, and who did."""

from __future__ import annotations

import numpy as np

from triptych.neuron.run.marks import Flags, Marks


class Shadow:
    """Which bytes of an HBM storage were loaded (0 or 1) and stored (0, or 1 + the program that did it last)."""

    __slots__ = ("_last", "loads", "stores")

    def __init__(self, size: int, programs: int) -> None:
        """The shadow of `size` bytes that none of so many programs has touched."""
        kind = np.min_scalar_type(programs + 1)
        self._last = int(np.iinfo(kind).max)
        self.loads = Marks(size, 0)
        self.stores = Marks(size, 0, kind)

    def touched(self) -> tuple[Flags, Flags]:
        """Which bytes were loaded, and which stored."""
        return self.loads.marked(), self.stores.marked()

    def synchronise(self) -> None:
        """The programs met: what was stored before is no race with what comes."""
        self.stores.replace_marked(self._last)
