"""How a warp's local memory lies: a row of 32 words for each word of a thread, lane after lane, as hardware has it.

So lanes that reach for one offset reach for neighbouring words.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from triptych.gpu.hardware import LOCAL_WORD_BYTES, WARP_SIZE
from triptych.gpu.isa.spaces import LOCAL
from triptych.gpu.lower.memory.windows import WINDOWS
from triptych.gpu.lower.primitives.emitter import Emitter, constant, lanes, number
from triptych.gpu.lower.records import Context

LOCAL_ROW_BYTES = LOCAL_WORD_BYTES * WARP_SIZE
"""From a thread's word to its next one."""


class LocalMemory:
    """The local memory of the warp that runs."""

    def __init__(self, e: Emitter, context: ir.Value) -> None:
        """Looks up where it lies."""
        self.e, self.b, self.window = e, e.b, WINDOWS[LOCAL]
        self.limit = e.load_field(Context, context, self.window.size)
        threads = e.b.mul(e.load_field(Context, context, "warp_index"), constant(WARP_SIZE))
        before = e.b.mul(threads, e.load_field(Context, context, "local_stride"))
        self.base = e.b.add(e.load_field(Context, context, self.window.base), before)

    def has(self, address: ir.Value, size: int) -> ir.Value:
        """Whether `size` bytes from an address on are a thread's own, and aligned."""
        b = self.b
        end = b.add(address, constant(size))
        inside = b.and_(b.icmp_unsigned("<", address, end), b.icmp_unsigned("<=", end, self.limit))
        aligned = b.icmp_unsigned("==", b.and_(address, constant(size - 1)), constant(0))
        return b.and_(inside, aligned)

    def distances(self, addresses: ir.Value) -> ir.Value:
        """How far from the base each lane's words lie, of 32 addresses."""
        kind = addresses.type
        return self.b.add(_row_distance(self.b, addresses), lanes(kind.element, LOCAL_WORD_BYTES))

    def row(self, address: ir.Value) -> ir.Value:
        """Where the row with the word of an address begins, an address of the host."""
        return self.b.add(_row_distance(self.b, address), self.base)

    def places(self, addresses: ir.Value) -> ir.Value:
        """Where each lane's byte lies, a <32 x i64>; what follows it beyond its word lies in the next rows."""
        byte = self.b.and_(addresses, number(addresses.type, LOCAL_WORD_BYTES - 1))
        return self.b.add(self.b.add(self.distances(addresses), byte), self.e.splat(self.base))

    def place(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """Where one lane's byte lies."""
        byte = self.b.and_(address, constant(LOCAL_WORD_BYTES - 1))
        return self.b.add(self.row(address), self.b.add(self.b.shl(lane, constant(2)), byte))


def _row_distance(b: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """From the first row to that with the word of an address."""
    word = b.and_(address, number(address.type, -LOCAL_WORD_BYTES))
    return b.shl(word, number(address.type, WARP_SIZE.bit_length() - 1))


def parts_of(size: int, total: int) -> Iterator[tuple[int, int]]:
    """Parts of `total` bytes of a thread, `size` at a time: each one's offset, and how far behind the first it lies.

    `size` is at most a word's, and the first byte's address a multiple of `size`, of a word's if `total` is more.
    """
    for offset in range(0, total, size):
        yield offset, offset // LOCAL_WORD_BYTES * LOCAL_ROW_BYTES + offset % LOCAL_WORD_BYTES
