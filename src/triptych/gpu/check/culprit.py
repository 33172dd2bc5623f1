"""Who did it: the thread that a worker recorded."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.core.source import Index
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.records import Context
from triptych.gpu.run.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Culprit:
    """A thread and its block."""

    thread: Index
    block: Index

    @classmethod
    def of(cls, context: Context, geometry: Geometry) -> Culprit:
        """The thread that a worker's fault names."""
        thread = context.fault_warp * WARP_SIZE + context.fault_lane
        return cls(geometry.thread(thread), geometry.block_index(context.fault_block))

    def __str__(self) -> str:
        """`by thread (x,y,z) in block (x,y,z)`."""
        return f"by thread {as_text(self.thread)} in block {as_text(self.block)}"


def as_text(index: Index) -> str:
    """`(x,y,z)`."""
    return f"({index[0]},{index[1]},{index[2]})"
