"""An access to memory as errors and findings tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Access = Literal["load", "store", "atomic"]
"""What an access does to memory."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """What an access did and where; None is what is not known, all of it where no access is meant."""

    access: Access | None = None
    """`load`, `store` or `atomic`."""
    space: str | None = None
    """The memory that it reached for: `global`, `shared`, `shared::cluster`, `async shared` (of asynchronous copies),
    `local`, `param`; `hbm` on Neuron."""
    address: int | None = None
    """Where the thread's access began, in bytes: an address of the space."""
    bytes: int | None = None
    """The bytes that the thread asked for."""
    allocation: str | None = None
    """The name of the nearest allocation, or of the one that may not be written."""


NO_ACCESS = MemoryAccess()


class TellsAccess:
    """What has a `memory`, and gives its fields as its own."""

    __slots__ = ()

    memory: MemoryAccess

    @property
    def access(self) -> Access | None:
        """`load`, `store` or `atomic`: of an access to memory, as are the following."""
        return self.memory.access

    @property
    def space(self) -> str | None:
        """The memory that it reached for: `global`, `shared`, `shared::cluster`, `async shared` (of asynchronous
        copies), `local`, `param`; `hbm` on Neuron."""
        return self.memory.space

    @property
    def address(self) -> int | None:
        """Where the thread's access began, in bytes: an address of the space."""
        return self.memory.address

    @property
    def bytes(self) -> int | None:
        """The bytes that the thread asked for."""
        return self.memory.bytes

    @property
    def allocation(self) -> str | None:
        """The name of the nearest allocation, or of the one that may not be written."""
        return self.memory.allocation
