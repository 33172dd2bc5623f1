"""Where the memory of a space lies that is one piece: a row a space, by the worker's context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.gpu.isa.spaces import LOCAL, SHARED, Space
from triptych.gpu.lower.records import FaultKind


@dataclass(frozen=True, slots=True)
class Window:
    """A space's memory of the block that runs; of a thread's own space, that of each thread after the other."""

    base: str
    """The field of `Context` that says where it begins, an address of the host."""
    size: str
    """The field of `Context` with the bytes that an access may reach: of the block, or of a thread."""
    fault: FaultKind
    """What an access beyond them is."""


WINDOWS: Mapping[Space, Window] = {
    SHARED: Window("shared", "shared_size", FaultKind.SHARED_BOUNDS),
    LOCAL: Window("local", "local_size", FaultKind.LOCAL_BOUNDS),
}
