"""The bytes of all storages of a device at one moment, as a machine is given them for launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import Storage

_T = TypeVar("_T")


class PlacedMemory(dict[Storage, NDArray[np.uint8]]):
    """The bytes of storages. Nothing is added to it, so that what is worked out of it serves the next launch too."""

    def __init__(self, contents: Mapping[Storage, NDArray[np.uint8]]) -> None:
        """A copy of `contents`."""
        super().__init__(contents)
        self._derived: dict[type, Any] = {}

    def derive(self, kind: type[_T], make: Callable[[Mapping[Storage, NDArray[np.uint8]]], _T]) -> _T:
        """What `make` works out of the contents: once for each kind of it, while they stay the same."""
        found = self._derived.get(kind)
        if found is None:
            found = self._derived[kind] = make(self)
        return cast(_T, found)
