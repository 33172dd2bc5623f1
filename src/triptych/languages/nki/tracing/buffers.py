"""The memories that `buffer=` may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triptych.neuron.isa import Space

Allocation = Callable[[tuple[int, ...], int, int], tuple[int, int]]
"""(index of the block, partitions, bytes of a partition) -> the first partition, and the byte of each."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A memory: `nl.sbuf`, `nl.psum`, or one of the kinds of HBM."""

    name: str
    space: Space
    shared: bool = False
    """Whether all programs of the grid see the same tensor."""
    allocation: Allocation | None = None
    """Where the blocks of a tensor lie, where the author says so."""

    @property
    def private(self) -> Buffer:
        """The same memory, for one program alone."""
        return private_hbm if self.shared else self

    def __repr__(self) -> str:
        """The name that authors use."""
        return f"nl.{self.name}"


sbuf = Buffer("sbuf", Space.SBUF)
psum = Buffer("psum", Space.PSUM)
private_hbm = Buffer("private_hbm", Space.HBM)
hbm = private_hbm
shared_hbm = Buffer("shared_hbm", Space.HBM, shared=True)
