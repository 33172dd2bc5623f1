"""How long a worker whose blocks all wait in loops goes on, and when it gives up."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.lower.records import NO_STOP, FaultKind, Status, Warp
from triptych.gpu.run.slots import held_blocks
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
        if self.state.stop_block.value != NO_STOP:
            return False
        doings, spins = self.worker.count_doings(), self.worker.context.spins
        before, self.spins = self.spins, spins
        seen, self.seen = self.seen, [self._look(other) for other in self.others]
        if doings != self.doings:
            self.doings, self.charged, self.pause_s = doings, 0, _PAUSES_S[0]
            self.budgets = [warps[:, _BUDGET].copy() for warps in self.worker.slots.warps]
            return True
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
        self._give_up()
        return False

    def _give_up(self) -> None:
        """Records that the lowest of the blocks hangs, and stops the launch."""
        context = self.worker.context
        number, warps, _ = held_blocks(self.worker.slots, context)[0]
        ready = warps[:, Warp.position("status")] == Status.READY
        context.fault_warp = int(ready.argmax())
        context.fault_block = number
        context.fault_kind = FaultKind.HANG
        self.state.stop_block.value = -1
