"""The barriers of a block, kept the plain way: who has arrived, and who is let go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from triptych.core.errors import BarrierMisuse
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Effect
from triptych.gpu.oracle.values import LANES, Mask

if TYPE_CHECKING:
    from triptych.gpu.oracle.warp import Warp

MOST = 16


class State(Enum):
    """What a warp does between two runs."""

    READY = "ready"
    WAITING = "waiting"
    """At barriers of the block."""
    DONE = "done"


@dataclass(slots=True)
class _Phase:
    """A barrier since it last completed."""

    threads: int | None
    arrived: int = 0
    live: int = 0
    holds: list[bool] = field(default_factory=list[bool])
    """A reduction's predicate in each thread that gave one."""


@dataclass(slots=True)
class Barriers:
    """Of one block, whose warps are filled in once they are there."""

    warps: Sequence[Warp] = ()
    phases: dict[int, _Phase] = field(default_factory=dict[int, _Phase])

    def arrive(self, warp: Warp, instruction: BoundInstruction, lanes: Mask) -> None:
        """Lanes of a warp execute a barrier; those that wait there are marked already.

        Raises:
            BarrierMisuse: there is no such barrier, or the numbers of threads do not fit.
        """
        operands = instruction.barrier
        assert operands is not None
        read = warp.registers.read
        numbers = read(operands.number)
        threads = None if operands.threads is None else read(operands.threads)
        left = lanes.copy()
        while left.any():
            first = int(np.flatnonzero(left)[0])
            same = left & (numbers == numbers[first])
            if threads is not None:
                same &= threads == threads[first]
            left &= ~same
            number, wanted = int(numbers[first]), None if threads is None else int(threads[first])
            phase = self._phase(instruction, number, wanted)
            phase.live += int(same.sum())
            phase.arrived += LANES if operands.aligned and bool((same == warp.live).all()) else int(same.sum())
            if operands.predicate is not None:
                phase.holds += read(operands.predicate)[same].tolist()
            if wanted is not None and phase.arrived >= wanted:
                self._complete(number)

    def _phase(self, instruction: BoundInstruction, number: int, threads: int | None) -> _Phase:
        if number >= MOST or (threads is not None and (threads == 0 or threads % LANES)):
            raise BarrierMisuse(f"{instruction.instruction.opcode}: barrier {number} of {threads} threads")
        phase = self.phases.setdefault(number, _Phase(threads))
        if phase.threads != threads:
            raise BarrierMisuse(f"{instruction.instruction.opcode}: barrier {number} of {phase.threads} and {threads}")
        return phase

    def _complete(self, number: int) -> None:
        phase = self.phases.pop(number)
        for warp in self.warps:
            lanes = warp.live & (warp.waiting == number)
            if phase.holds and lanes.any():
                for lane in np.flatnonzero(lanes):
                    _give(warp, int(lane), phase.holds)
            warp.waiting[lanes] = -1
            if lanes.any():
                warp.state = State.READY

    def settle(self) -> bool:
        """Completes the barriers at which all live threads have arrived; whether there was one."""
        live = sum(int(warp.live.sum()) for warp in self.warps)
        full = [number for number, phase in self.phases.items() if phase.threads is None and phase.live >= live]
        for number in full:
            self._complete(number)
        return bool(full)


def _give(warp: Warp, lane: int, holds: Sequence[bool]) -> None:
    instruction = warp.waits_at[lane]
    if instruction is None or instruction.effect is not Effect.BLOCK_REDUCTION:
        return
    results = {"and": all(holds), "or": any(holds)}
    value = results.get(instruction.form.get("operation"), sum(holds))
    destination = instruction.destinations[0]
    dtype = np.bool_ if destination.type.kind == "predicate" else np.uint32
    warp.registers.write(destination, np.full(LANES, value, dtype), np.arange(LANES) == lane)
