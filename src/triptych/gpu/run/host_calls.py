"""Calls of the functions that the host provides: from generated code to the table's meanings, lane after lane."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from triptych.core.errors import MemoryFault
from triptych.gpu.hardware import LOCAL_WORD_BYTES, WARP_SIZE
from triptych.gpu.isa.calls import HOST_FUNCTIONS, MOST_TEXT, HostFault
from triptych.gpu.isa.spaces import LOCAL, space_at
from triptych.gpu.lower.memory import WINDOWS
from triptych.gpu.lower.records import Context, Site, StorageRow
from triptych.gpu.run.heap import DeviceHeap

if TYPE_CHECKING:
    from triptych.gpu.run.worker import LaunchState, Worker

CALL_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""(the function's place in the table, lanes as bits, the table of arguments) -> 0 to go on, else 1 + the lane that
stops the launch. Arguments lie operand after operand, 32 lanes of 8 bytes each; results take the first's place."""
_ROWS = tuple(HOST_FUNCTIONS.values())


class HostCalls:
    """Carries out one worker's calls; fulfils `Host` for the lane whose turn it is."""

    def __init__(self, state: LaunchState, worker: Worker) -> None:
        """For a worker of a launch; its context learns where to call."""
        self.state = state
        self.worker = worker
        self.fault: HostFault | None = None
        """What stopped the launch."""
        self.error: BaseException | None = None
        """A mistake of ours, or an interruption."""
        self.thread = 0
        self._texts: dict[int, bytes] = {}
        """Strings that lanes of the same call have read."""
        names = ("low", "high", "delta", "parts")
        self._low, self._high, self._delta, self._parts = (
            state.table.rows[:, StorageRow.position(name)].tolist() for name in names
        )
        self._function = CALL_TYPE(self._call)
        worker.context.host_call = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    @property
    def context(self) -> Context:
        """The worker's."""
        return self.worker.context

    def _call(self, number: int, mask: int, table: int) -> int:
        row = _ROWS[number]
        lane = 0
        try:
            operands = (ctypes.c_uint64 * (WARP_SIZE * max(len(row.parameters), 1))).from_address(table)
            self._texts.clear()
            first = self.context.warp_index * WARP_SIZE
            for lane in range(WARP_SIZE):
                if mask >> lane & 1:
                    self.thread = first + lane
                    values = [operands[place * WARP_SIZE + lane] for place in range(len(row.parameters))]
                    result = row.meaning(self, *values)
                    operands[lane] = (result or 0) & 0xFFFF_FFFF_FFFF_FFFF
        except HostFault as fault:
            self.fault = fault
            return 1 + lane
        except BaseException as error:
            self.error = error
            return 1 + lane
        return 0

    # What functions ask for -------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """See `Host`."""
        start, end = self._find(address)
        if start is None or address + size > end:
            raise self._unreachable(address, size)
        return self._own(start, size) if LOCAL.has_in_window(address) else ctypes.string_at(start, size)

    def read_text(self, address: int) -> bytes:
        """See `Host`."""
        known = self._texts.get(address)
        if known is not None:
            return known
        start, end = self._find(address)
        if start is None:
            raise self._unreachable(address, 1)
        most = min(end - address, MOST_TEXT)
        if LOCAL.has_in_window(address):
            return self._own(start, most).split(b"\0", 1)[0]  # another lane's is another text
        self._texts[address] = text = ctypes.string_at(start, most).split(b"\0", 1)[0]
        return text

    def _own(self, start: int, size: int) -> bytes:
        """Bytes of the thread's local memory, whose words lie among those of the other lanes (`interleaving.py`)."""
        warp, lane = divmod(self.thread, WARP_SIZE)
        first, last = start // LOCAL_WORD_BYTES, (start + size - 1) // LOCAL_WORD_BYTES
        row_bytes = WARP_SIZE * LOCAL_WORD_BYTES
        rows = self.context.local + warp * WARP_SIZE * self.state.geometry.local_stride + first * row_bytes
        held = np.frombuffer(ctypes.string_at(rows, (last - first + 1) * row_bytes), np.uint32)
        before = start - first * LOCAL_WORD_BYTES
        return held[lane::WARP_SIZE].tobytes()[before : before + size]

    def _find(self, address: int) -> tuple[int | None, int]:
        """The host's place of a generic address, and the first device address behind its storage.

        In local memory the place is the offset in the thread's own.
        """
        context = self.context
        space = space_at(address)
        if space in WINDOWS:
            window, offset = WINDOWS[space], address - space.window
            size = getattr(context, window.size)
            base: int = 0 if space is LOCAL else getattr(context, window.base)
            return (base + offset, space.window + size) if offset < size else (None, 0)
        place = bisect_right(self._low, address) - 1
        if place < 0:
            return None, 0
        low, high = self._low[place], self._high[place]
        if self._parts[place] and low <= address < high:
            low, high = self._heap().bounds_at(address)
        if not low <= address < high:
            return None, 0
        return address + self._delta[place], high

    def _unreachable(self, address: int, size: int) -> HostFault:
        where = "a null pointer" if address == 0 else f"address {address:#x}"
        hint = "pass the address of memory that the kernel can read, and a string that ends with a zero"
        return HostFault(MemoryFault, f"a call reads {size} bytes at {where}, which is out of bounds", hint)

    def describe_thread(self) -> str:
        """See `Host`."""
        geometry = self.state.geometry
        block, thread = geometry.block_index(self.context.block_index), geometry.thread(self.thread)
        return f"block: [{_commas(block)}], thread: [{_commas(thread)}]"

    def write_output(self, text: bytes) -> bool:
        """See `Host`."""
        return self.state.printed.write(self.context.block_index, text)

    def allocate(self, size: int) -> int:
        """See `Host`."""
        return self._heap().allocate(size, self.state.undefined_byte)

    def release(self, address: int) -> bool:
        """See `Host`; no site of the worker takes the memory for an allocation any more."""
        released = self._heap().release(address)
        sites = self.worker.sites
        stale = sites[:, Site.position("low")] == address
        sites[stale, Site.position("low")], sites[stale, Site.position("high")] = 1, 0
        return released

    def _heap(self) -> DeviceHeap:
        assert self.state.heap is not None, "a kernel that allocates has a heap"
        return self.state.heap


def _commas(index: tuple[int, int, int]) -> str:
    return ",".join(map(str, index))
