"""The functions of the host as the oracle carries them out: one lane at a time, on its own memory."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field

import numpy as np

from triptych.core.errors import MemoryFault
from triptych.core.handles import Storage
from triptych.gpu.hardware import FIRST_HEAP_ADDRESS
from triptych.gpu.isa.calls import HostFault
from triptych.gpu.oracle.memory import Bytes, WarpMemory

GAP = 4096
"""Bytes between allocations."""


@dataclass(slots=True)
class Device:
    """What all blocks of a launch share beside the arrays."""

    storages: MutableMapping[Storage, Bytes]
    """All that a kernel can reach; what it allocates comes to it."""
    printed: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """By number of the block."""
    next_address: int = FIRST_HEAP_ADDRESS

    @property
    def text(self) -> str:
        """What was printed, in the order of the blocks."""
        return b"".join(text for _, text in sorted(self.printed.items())).decode(errors="replace")


@dataclass(slots=True)
class LaneHost:
    """Fulfils `Host` for one lane."""

    device: Device
    memory: WarpMemory
    block: int
    lane: int
    label: str
    """The block and the thread as CUDA's messages have them."""

    def read(self, address: int, size: int) -> bytes:
        """See `Host`."""
        data = self.memory.bytes_at(self.lane, address)
        if data is None or len(data) < size:
            raise HostFault(MemoryFault, f"a call reads {size} bytes at {address:#x}, out of bounds", "")
        return data[:size].tobytes()

    def read_text(self, address: int) -> bytes:
        """See `Host`."""
        data = self.memory.bytes_at(self.lane, address)
        if data is None:
            raise HostFault(MemoryFault, f"a call reads a string at {address:#x}, out of bounds", "")
        return data.tobytes().split(b"\0")[0]

    def describe_thread(self) -> str:
        """See `Host`."""
        return self.label

    def write_output(self, text: bytes) -> bool:
        """See `Host`; there is room for everything."""
        self.device.printed[self.block] = self.device.printed.get(self.block, b"") + text
        return True

    def allocate(self, size: int) -> int:
        """See `Host`; there is room for everything."""
        storage = Storage("heap", self.device.next_address, size)
        self.device.storages[storage] = np.zeros(size, np.uint8)
        self.device.next_address += -(-size // GAP) * GAP + GAP
        return storage.address

    def release(self, address: int) -> bool:
        """See `Host`."""
        found = [s for s in self.device.storages if s.address == address and address >= FIRST_HEAP_ADDRESS]
        for storage in found:
            del self.device.storages[storage]
        return bool(found)
