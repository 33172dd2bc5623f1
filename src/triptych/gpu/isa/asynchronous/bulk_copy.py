"""What a bulk copy does, as its rows, both executors and its helper know it."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.gpu.isa.spaces import ASYNCHRONOUS, Space
from triptych.gpu.isa.types import ScalarType

UNIT_BYTES = 16
"""What addresses and sizes of bulk copies are multiples of (PTX manual, 9.7.9.25.4.1)."""


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """What a bulk copy does; shared memory of the cluster, of which `shared::cta` is a part, is `ASYNCHRONOUS`."""

    source: Space
    target: Space
    type: ScalarType | None = None
    """Of the elements that a reduction combines, None where bytes are copied."""
    operation: str = ""
    """The reduction's."""
    multicast: bool = False
    """Whether it goes to one place of several blocks of the cluster."""

    @property
    def name(self) -> str:
        """Names it among symbols."""
        parts = [str(space).replace(" ", "_") for space in (self.source, self.target)]
        parts += [] if self.type is None else [self.operation, str(self.type)]
        return ".".join([*parts, "multicast"] if self.multicast else parts)

    @property
    def signals(self) -> bool:
        """Whether an mbarrier is told of its end; else a group of copies waits for it."""
        return self.target is ASYNCHRONOUS
