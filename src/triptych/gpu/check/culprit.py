"""Who did it: the thread that a worker recorded, and what the error says of it and its instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from triptych.core.errors import KernelFault
from triptych.core.source import Index
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.records import Context
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.syntax.ast import Instruction

Fault = TypeVar("Fault", bound=KernelFault)


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

    def fault(
        self, error: Callable[..., Fault], what: str, hint: str, kernel: str, instruction: Instruction,
        place: str = "", **details: object,
    ) -> Fault:  # fmt: skip
        """The error for what a thread's instruction did, in lines: what, who, `place` where there is one, and where.

        `details`: what errors of that class know besides.
        """
        lines = [what, f"  {self}", *([f"  {place}"] if place else [])]
        lines.append(f"  instruction {instruction.opcode}, PTX line {instruction.line}")
        if instruction.where.text:
            lines.append(f"  {instruction.where.text}")
        return error(
            "\n".join(lines), where=instruction.where, hint=hint, frames=instruction.frames, kernel=kernel,
            thread=self.thread, block=self.block, **details,
        )  # fmt: skip

    def __str__(self) -> str:
        """`by thread (x,y,z) in block (x,y,z)`."""
        return f"by thread {as_text(self.thread)} in block {as_text(self.block)}"


def as_text(index: Index) -> str:
    """`(x,y,z)`."""
    return f"({index[0]},{index[1]},{index[2]})"
