"""A launch's shape: its grid and its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from triptych.core.source import Index
from triptych.gpu.hardware import LOCAL_ALIGNMENT, WARP_SIZE


@dataclass(frozen=True, slots=True)
class Geometry:
    """A launch's shape."""

    grid: Index
    block: Index
    shared_bytes: int
    """Static and dynamic, behind the system's part where the kernel asks for that."""
    local_bytes: int = 0
    """Of a thread, its stack included."""
    cluster: Index = (1, 1, 1)
    """Blocks of a cluster, of which the grid is a multiple."""
    explicit_cluster: bool = False
    """Whether the launch or the kernel says so."""
    order: range | None = None
    """Which of the grid's clusters, or single blocks, are run, and in which order; None: all, from the first to the
    last. Numbers of blocks are those of that order."""

    @property
    def blocks(self) -> int:
        """Blocks that are run."""
        return prod(self.grid) if self.order is None else len(self.order) * self.cluster_size

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

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return prod(self.cluster)

    def block_index(self, number: int) -> Index:
        """`blockIdx` of the block with this number: blocks are numbered cluster after cluster, by their ranks there."""
        clusters = tuple(extent // part for extent, part in zip(self.grid, self.cluster, strict=True))
        cluster = number // self.cluster_size
        first = _index(cluster if self.order is None else self.order[cluster], clusters)
        within = _index(number % self.cluster_size, self.cluster)
        x, y, z = (n * part + inner for n, part, inner in zip(first, self.cluster, within, strict=True))
        return x, y, z

    def cluster_of(self, number: int) -> range:
        """The numbers of the blocks of a block's cluster."""
        first = number - number % self.cluster_size
        return range(first, first + self.cluster_size)


def order_of(clusters: int, most: int | None, *, descending: bool = False) -> range | None:
    """Which clusters are run of so many, and in which order; None: all, from the first to the last.

    Of more than `most`, those at equal distances. The distance has no factor in common with their number: a grid whose
    rows differ, as those of causal attention do, is not seen at one column only.
    """
    if most is None or most >= clusters:
        return range(clusters - 1, -1, -1) if descending else None
    step = -(-clusters // most)
    while gcd(step, clusters) > 1:
        step += 1
    beside = (clusters - 1) % step  # of the grid, before the first and behind the last one
    order = range(beside // 2, clusters, step)
    return order[::-1] if descending else order


def _index(number: int, extent: tuple[int, ...]) -> Index:
    x, y, _ = extent
    return number % x, number // x % y, number // (x * y)
