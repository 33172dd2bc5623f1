"""A launch's shape: its grid and its blocks."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.core.source import Index
from triptych.gpu.hardware import LOCAL_ALIGNMENT, WARP_SIZE


@dataclass(frozen=True, slots=True)
class Geometry:
    """A launch's shape."""

    grid: Index
    block: Index
    shared_bytes: int
    """Static and dynamic."""
    local_bytes: int = 0
    """Of a thread, its stack included."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // WARP_SIZE)

    @property
    def local_stride(self) -> int:
        """Bytes from one thread's local memory to the next one's."""
        return -(-self.local_bytes // LOCAL_ALIGNMENT) * LOCAL_ALIGNMENT

    def thread(self, number: int) -> Index:
        """`threadIdx` of the thread with this number in its block."""
        return _index(number, self.block)

    def block_index(self, number: int) -> Index:
        """`blockIdx` of the block with this number in the grid."""
        return _index(number, self.grid)


def _index(number: int, extent: Index) -> Index:
    x, y, _ = extent
    return number % x, number // x % y, number // (x * y)
