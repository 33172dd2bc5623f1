"""The blocks of a cluster kept the plain way: whose shared memory is whose, and who has arrived at their barrier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import BarrierMisuse, DeadlockError
from triptych.gpu.oracle.barriers import MOST, Barriers, State
from triptych.gpu.oracle.values import Mask

if TYPE_CHECKING:
    from triptych.gpu.oracle.warp import Warp

CLUSTER_BARRIER = MOST
"""Where a lane waits that waits for its cluster: a number that no barrier of a block has."""
Thread = tuple[int, int]
"""The identity of a warp, and a lane."""


@dataclass(frozen=True, slots=True)
class ClusterMemory:
    """The shared memory of a cluster as one of its blocks sees it."""

    rank: int
    """The block's own."""
    shared: list[NDArray[np.uint8] | None]
    """By rank; None of blocks that have exited. All blocks of a cluster have the same list."""


@dataclass(slots=True)
class ClusterBarrier:
    """Completes when every thread of the cluster that lives has arrived; each then has to wait before it may again."""

    arrived: set[Thread] = field(default_factory=set[Thread])
    """Since it last completed."""
    owing: set[Thread] = field(default_factory=set[Thread])
    """Those that have arrived and not waited since."""

    def arrive(self, warp: Warp, lanes: Mask) -> None:
        """Lanes of a warp arrive.

        Raises:
            BarrierMisuse: one has arrived before and not waited.
        """
        threads = _threads(warp, lanes)
        if threads & self.owing:
            raise BarrierMisuse("a thread arrives twice at its cluster's barrier without a wait in between")
        self.arrived |= threads
        self.owing |= threads

    def wait(self, warp: Warp, lanes: Mask) -> Mask:
        """Lanes of a warp want to go on; gives those that have to wait.

        Raises:
            BarrierMisuse: one has not arrived.
        """
        threads = _threads(warp, lanes)
        if not threads <= self.owing:
            raise BarrierMisuse("a thread waits at its cluster's barrier where it has not arrived")
        self.owing -= threads
        return np.array([(id(warp), lane) in self.arrived for lane in range(len(lanes))]) & lanes

    def settle(self, warps: list[Warp]) -> bool:
        """Completes it if all live threads of the cluster's warps have arrived; whether it did."""
        if not all(_threads(warp, warp.live) <= self.arrived for warp in warps):
            return False
        self.arrived.clear()
        for warp in warps:
            released = warp.live & (warp.waiting == CLUSTER_BARRIER)
            warp.waiting[released] = -1
            if released.any():
                warp.state = State.READY
        return True


def _threads(warp: Warp, lanes: Mask) -> set[Thread]:
    return {(id(warp), int(lane)) for lane in np.flatnonzero(lanes)}


@dataclass(eq=False, slots=True)
class Block:
    """A block that has started."""

    warps: list[Warp]
    barriers: Barriers

    def run(self) -> State:
        """Runs until all its warps have ended, all that live wait at barriers, or some have waited in loops long."""
        while True:
            for warp in self.warps:
                if warp.state is State.READY:
                    warp.state = warp.run()
            states = {warp.state for warp in self.warps}
            if states == {State.DONE}:
                return State.DONE
            if State.WAITING in states and self.barriers.settle():
                continue
            return State.READY if State.READY in {warp.state for warp in self.warps} else State.WAITING


@dataclass(eq=False, slots=True)
class Cluster:
    """Blocks that run together, by rank."""

    blocks: list[Block]
    barrier: ClusterBarrier
    shared: list[NDArray[np.uint8] | None]

    def run(self) -> bool:
        """Runs until all its blocks have ended, which it gives, or nothing but waiting in loops is left.

        Raises:
            DeadlockError: its threads wait at barriers for each other.
        """
        while True:
            states = [self._run_block(rank) for rank in range(len(self.blocks))]
            if all(state is State.DONE for state in states):
                return True
            if self.barrier.settle([warp for block in self.blocks for warp in block.warps]):
                continue
            if State.READY not in states:
                raise DeadlockError("threads of a block or of a cluster wait at barriers for each other")
            return False

    def _run_block(self, rank: int) -> State:
        state = State.DONE if self.shared[rank] is None else self.blocks[rank].run()
        if state is State.DONE:
            self.shared[rank] = None
        return state
