"""What divergence costs: warps that part in four ways, beside warps that do not part, each lane with equal work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness import Contender, Figure, Of, Peer, at_most, require_close, spread, take_turns
from launches import kernel, warp_instructions

THREADS = 256
SHIFTS = {"diverged": 0, "converged": 5}
RATIO_TARGET = 6.0
WAYS = ((0.5, 1.0), (0.25, 2.0), (0.125, 3.0), (0.0625, 4.0))


def measure(quick: bool) -> Iterator[Figure]:
    """A GPU executes four times the warp-instructions for the diverged launch; the ratio of times is ours."""
    blocks, steps, rounds = (4, 50, 2) if quick else (512, 1000, 7)
    out = np.zeros(blocks * THREADS, np.float32)
    launch = kernel("divergence.cu", "four_ways")[blocks, THREADS]
    contenders = {name: Contender(lambda s=shift: launch(out, steps, s)) for name, shift in SHIFTS.items()}
    seconds = take_turns(contenders, rounds)
    executed: dict[str, float] = {}
    for name, shift in SHIFTS.items():
        executed[name] = warp_instructions(launch, out, steps, shift)
        require_close(f"four ways, {name}", float(np.abs(out - _expected(len(out), steps, shift)).max()), 1e-4)
    best = {name: min(taken) for name, taken in seconds.items()}
    yield Figure(
        "four ways of equal work: diverged over converged", best["diverged"], "s", Peer("converged", best["converged"]),
        at_most(RATIO_TARGET, Of.RATIO), samples=seconds["diverged"], details=spread(seconds["diverged"]),
    )  # fmt: skip
    rate = {name: executed[name] / best[name] for name in SHIFTS}
    yield Figure(
        "the same, by warp-instructions", rate["diverged"], "warp-instructions/s", Peer("converged", rate["converged"]),
        details={"warp_instructions_ratio": executed["diverged"] / executed["converged"]},
    )  # fmt: skip


def _expected(threads: int, steps: int, shift: int) -> NDArray[np.float64]:
    index = np.arange(threads)
    factor, summand = np.array(WAYS)[(index % THREADS >> shift) & 3].T
    value = index.astype(np.float64)
    for _ in range(min(steps, 200)):  # a fixed point long before
        value = value * factor + summand
    return value
