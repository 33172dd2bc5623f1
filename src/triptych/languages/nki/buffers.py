"""The memories that `buffer=` may name."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.neuron.isa import Space


@dataclass(frozen=True, slots=True)
class Buffer:
    """A memory: `nl.sbuf`, `nl.psum`, or one of the kinds of HBM."""

    name: str
    space: Space
    shared: bool = False
    """Whether all programs of the grid see the same tensor."""

    def __repr__(self) -> str:
        """The name that authors use."""
        return f"nl.{self.name}"


sbuf = Buffer("sbuf", Space.SBUF)
psum = Buffer("psum", Space.PSUM)
private_hbm = Buffer("private_hbm", Space.HBM)
hbm = private_hbm
shared_hbm = Buffer("shared_hbm", Space.HBM, shared=True)
