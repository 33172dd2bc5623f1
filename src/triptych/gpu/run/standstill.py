"""Who waits where: what is told when threads wait for each other and none can go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.effects import Observation
from triptych.gpu.lower.records import BARRIER_SHIFT, EXITED, WAITING, Barrier, Status, Warp
from triptych.gpu.lower.scheduling.barriers import CLUSTER_BARRIER
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.slots import held_blocks
from triptych.gpu.run.worker import LaunchState, Worker
from triptych.gpu.syntax.ast import Instruction

_MOST_TOLD = 8
"""Places that are told one by one."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """A kernel that does not move."""

    places: str
    """A line for each place where threads are: how many, doing what."""
    first: Instruction | None
    """Where most of them are."""


def describe_standstill(kernel: Kernel, state: LaunchState, worker: Worker, *, only: range | None = None) -> Standstill:
    """Where the threads are that a worker holds; of the blocks `only`, where these are given."""
    threads: Counter[tuple[str, int]] = Counter()
    blocks: dict[tuple[str, int], set[int]] = {}
    held = held_blocks(worker.slots, worker.context)
    for number, warps, barriers in held:
        if only is None or number in only:
            cluster = [others for n, others, _ in held if n in state.geometry.cluster_of(number)]
            for warp in live_warps(warps):
                for at, lanes in places_of(warp):
                    key = _tell(kernel, at, barriers, cluster)
                    threads[key] += lanes
                    blocks.setdefault(key, set()).add(number)
    lines: list[str] = []
    found = threads.most_common()
    for (doing, place), count in found[:_MOST_TOLD]:
        instruction = kernel.instruction_at(place)
        where = "" if instruction is None else f", {instruction.where}"
        of = "" if state.geometry.blocks == 1 else f" of {_plural(len(blocks[doing, place]), 'block')}"
        lines.append(f"  {_plural(count, 'thread')}{of} {doing}{where}")
    if len(found) > _MOST_TOLD:
        lines.append(f"  others at {_plural(len(found) - _MOST_TOLD, 'more place')}")
    unstarted = state.geometry.blocks - min(state.geometry.blocks, state.next_block.value)
    if unstarted and only is None:
        lines.append(f"  {_plural(unstarted, 'block')} not started: {state.most_held} are held at once")
    return Standstill("\n".join(lines), kernel.instruction_at(found[0][0][1]) if found else None)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def places_of(warp: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each next block of a warp's live lanes, marked as in `next_blocks`, with its lanes."""
    if warp[Warp.position("mode")]:
        first = Warp.position("next_blocks_0")
        following = warp[first : first + WARP_SIZE // 2].view(np.int32)
        places: list[int] = following.tolist()
        for at, lanes in Counter(places).items():
            if at != EXITED:
                yield at, lanes
        return
    at, lanes = int(warp[Warp.position("resume")]), int(warp[Warp.position("mask")]).bit_count()
    if warp[Warp.position("status")] == Status.WAITING:
        at |= WAITING | int(warp[Warp.position("barrier")]) << BARRIER_SHIFT
    yield at, lanes


def live_warps(warps: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The records of those warps that have not ended."""
    yield from warps[warps[:, Warp.position("status")] != Status.DONE]


def _count_live(warps: NDArray[np.int64]) -> int:
    """The threads of a block that have not ended."""
    return sum(lanes for warp in live_warps(warps) for _, lanes in places_of(warp))


def _count_arrived(warps: NDArray[np.int64]) -> int:
    """Those of them that have arrived at the cluster's barrier."""
    return sum(int(warp[Warp.position("cluster_arrived")]).bit_count() for warp in live_warps(warps))


def _tell(
    kernel: Kernel, at: int, barriers: NDArray[np.int64], cluster: Sequence[NDArray[np.int64]]
) -> tuple[str, int]:
    """What lanes do, and the place of the instruction; `cluster` are the warps of each block of their cluster."""
    analysis = kernel.analysis
    block = at & ((1 << BARRIER_SHIFT) - 1)
    if at & WAITING:
        number = (at & ~WAITING) >> BARRIER_SHIFT
        before = next(b for b in analysis.graph.blocks if b.waits and b.fall_through == block)
        instruction = before.instructions[-1]
        if number == CLUSTER_BARRIER:
            arrived, live = (sum(map(count, cluster)) for count in (_count_arrived, _count_live))
            counts = f"{arrived} of the cluster's {live} threads have arrived"
            return f"wait at '{instruction.opcode}' ({counts})", instruction.place
        arrived, wanted = (int(barriers[number, Barrier.position(name)]) for name in ("arrived", "threads"))
        of = "threads of the block" if wanted < 0 else f"of {wanted} threads"
        return f"wait at '{instruction.opcode}' (barrier {number}: {arrived} {of} have arrived)", instruction.place
    bound = analysis.bound[block]
    if bound and bound[0].membermask is not None:
        return f"wait at '{bound[0].instruction.opcode}' for other lanes", bound[0].instruction.place
    looks = [i for i in bound if i.form.observes is not Observation.NOTHING] or bound
    if looks:
        return f"loop at '{looks[0].instruction.opcode}'", looks[0].instruction.place
    return "loop", 0
