"""A tiled SGEMM in shared memory: warp-instructions a second on one core and on two, beside numpy's own SGEMM."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

import triptych as tt
from harness import Contender, Figure, Of, Peer, at_least, require_close, spread, take_turns
from launches import kernel, warp_instructions
from machine import calibrate

TILE = 32
WORKERS = 2
RATE_TARGET = 300e6
SCALING_TARGET = 1.8


def measure(quick: bool) -> Iterator[Figure]:
    """Best of the rounds, one and two workers taking turns; BLAS is measured in the same run.

    The scaling is that of the medians: single runs differ by the clock that one busy core may take and two may not.
    """
    extent, rounds = (96, 2) if quick else (512, 41)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((extent, extent), np.float32) for _ in range(2))
    c = np.zeros_like(a)
    launch = kernel("sgemm.cu", "sgemm")[(extent // TILE, extent // TILE), (TILE, TILE)]
    executed = warp_instructions(launch, a, b, c, extent)
    contenders = {
        str(count): Contender(lambda: launch(a, b, c, extent), lambda count=count: tt.scope(workers=count))
        for count in (1, WORKERS)
    }
    seconds = take_turns(contenders, rounds)
    require_close("sgemm", float(np.abs(c - a @ b).max()), 1e-3)
    one, two = (executed / min(seconds[str(count)]) for count in (1, WORKERS))
    median_one, median_two = (executed / median(seconds[str(count)]) for count in (1, WORKERS))
    unit = "warp-instructions/s"
    details = {"extent": float(extent), "warp_instructions": executed}
    shown = {count: {**details, **spread(taken)} for count, taken in seconds.items()}
    yield Figure(f"SGEMM {extent}³, 1 worker", one, unit, samples=seconds["1"], details=shown["1"])
    yield Figure(
        f"SGEMM {extent}³, {WORKERS} workers", two, unit, target=at_least(RATE_TARGET),
        samples=seconds[str(WORKERS)], details=shown[str(WORKERS)],
    )  # fmt: skip
    yield Figure(
        f"SGEMM {extent}³, {WORKERS} workers over 1, by medians", median_two, unit, Peer("1 worker", median_one),
        at_least(SCALING_TARGET, Of.RATIO), details=details,
    )  # fmt: skip
    blas = calibrate(WORKERS, quick=quick)
    yield Figure(
        f"calibration: numpy's SGEMM, {WORKERS} threads over 1", blas.by_threads[WORKERS], "GFLOP/s",
        Peer("1 thread", blas.by_threads[1]),
    )  # fmt: skip
