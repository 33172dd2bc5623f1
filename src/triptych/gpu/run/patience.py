"""How long a worker whose blocks all wait in loops goes on, and when it gives up."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.lower.records import NO_STOP, WAITING, FaultKind, Status, Warp
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.slots import held_blocks
from triptych.gpu.run.standstill import live_warps, places_of
from triptych.gpu.run.worker import LaunchState, Worker

_PAUSES_S = (50e-6, 2e-3)
"""The first and the longest pause while others work."""
_BUDGET = [Warp.position("fuel"), Warp.position("spent")]
"""What of a warp's record counts its loop iterations."""


class Patience:
    """One worker's. Asked whenever all blocks that it holds have waited for a number of turns.

    What the warps do meanwhile costs them nothing of their budgets. While other workers do something, this one pauses.
    When all only wait, their iterations count: beyond the budget nobody is expected to move any more.
    """

    def __init__(self, worker: Worker, others: Sequence[Worker], state: LaunchState) -> None:
        """The worker, and those that may do what it waits for."""
        self.worker = worker
        self.others = others
        self.state = state
        self.doings = -1
        self.spins = 0
        self.charged = 0
        self.pause_s = _PAUSES_S[0]
        self.seen = [self._look(other) for other in others]
        self.budgets: list[NDArray[np.int64]] = []

    def _look(self, other: Worker) -> tuple[int, int]:
        return other.count_doings(), other.context.spins

    def lasts(self) -> bool:
        """Whether to go on; it pauses where that helps. False: the launch is being stopped, or is found to hang."""
        stopped = self.state.stop_block.value != NO_STOP
        if stopped and not self._may_be_stuck_first():
            return False
        doings, spins = self.worker.count_doings(), self.worker.context.spins
        before, self.spins = self.spins, spins
        seen, self.seen = self.seen, [self._look(other) for other in self.others]
        if doings != self.doings:
            self.doings, self.charged, self.pause_s = doings, 0, _PAUSES_S[0]
            self.budgets = [warps[:, _BUDGET].copy() for warps in self.worker.slots.warps]
            return True
        stuck = find_stuck_cluster(self.worker, self.state.geometry)
        if stuck is not None:
            self._give_up(FaultKind.DEADLOCK, stuck)
            return False
        if stopped:
            return False
        for warps, budget in zip(self.worker.slots.warps, self.budgets, strict=False):
            warps[:, _BUDGET] = budget
        pairs = list(zip(self.others, seen, self.seen, strict=True))
        if all(other.is_done or (was[0] == now[0] and was[1] != now[1]) for other, was, now in pairs):
            self.charged, self.pause_s = self.charged + spins - before, _PAUSES_S[0]
        else:
            if any(was[0] != now[0] for _, was, now in pairs):
                self.charged = 0
            time.sleep(self.pause_s)
            self.pause_s = min(2 * self.pause_s, _PAUSES_S[1])
        if self.charged <= self.state.budget:
            return True
        self._give_up(FaultKind.HANG, 0)
        return False

    def _may_be_stuck_first(self) -> bool:
        """Whether a fault leaves this worker blocks to run that may turn out to be stuck: that is told then."""
        lowest = held_blocks(self.worker.slots, self.worker.context)[0][0]
        return bool(self.worker.standing) and lowest <= self.state.stop_block.value

    def _give_up(self, kind: FaultKind, first: int) -> None:
        """Records that the lowest of the blocks from `first` on cannot go on; all before it, or none, run to an end."""
        context = self.worker.context
        number, warps, _ = next(held for held in held_blocks(self.worker.slots, context) if held[0] >= first)
        ready = warps[:, Warp.position("status")] == Status.READY
        context.fault_warp = int(ready.argmax())
        context.fault_block = number
        context.fault_kind = kind
        last = number - 1 if kind is FaultKind.DEADLOCK else -1
        self.state.stop_block.value = min(last, self.state.stop_block.value)


def find_stuck_cluster(worker: Worker, geometry: Geometry) -> int | None:
    """The first block of the lowest cluster of a worker whose threads all wait at barriers and mbarriers, if any.

    To be asked where the worker has changed nothing since all its warps ran last: then nobody lets them go on.
    """
    if not worker.standing:
        return None
    held = {number: warps for number, warps, _ in held_blocks(worker.slots, worker.context)}
    for first in sorted({geometry.cluster_of(number).start for number in held}):
        blocks = [held[number] for number in geometry.cluster_of(first) if number in held]
        places = (at for warps in blocks for warp in live_warps(warps) for at, _ in places_of(warp))
        if all(at & WAITING or at in worker.standing for at in places):
            return first
    return None
