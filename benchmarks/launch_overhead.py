"""What one launch of a tiny kernel costs when everything is compiled: Python's way to the machine and back."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np

from harness import Figure, at_most, probe, time_call
from launches import kernel

MICROSECONDS_TARGET = 150.0
"""For Triton's launches."""


def measure(quick: bool) -> Iterator[Figure]:
    """Medians, each language in a process of its own."""
    launches = 20 if quick else 500
    for language, target in {"cuda": None, "triton": at_most(MICROSECONDS_TARGET)}.items():
        for workers in (1, 2):
            found = probe(
                "launch_overhead", f"launch_{language}", {"TRIPTYCH_WORKERS": str(workers)}, launches=launches
            )["microseconds"]  # fmt: skip
            yield Figure(
                f"a tiny {language} launch, 1 block, {workers} workers", statistics.median(found), "µs",
                target=target, samples=found, sample_unit="µs", details={"best_us": min(found), "worst_us": max(found)},
            )  # fmt: skip


def _time(launch: Callable[[], object], launches: int) -> dict[str, list[float]]:
    for _ in range(3):
        launch()
    return {"microseconds": [1e6 * time_call(launch) for _ in range(launches)]}


def launch_cuda(launches: int) -> dict[str, list[float]]:
    """Microseconds of each launch of a CUDA kernel of one warp with three arguments."""
    a, b = np.ones(32, np.float32), np.zeros(32, np.float32)
    launch = kernel("tiny.cu", "tiny")[1, 32]
    return _time(lambda: launch(a, b, 32), launches)


def launch_triton(launches: int) -> dict[str, list[float]]:
    """Microseconds of each launch of a Triton kernel of one block with four arguments."""
    from peers.triton_add import prepare  # noqa: PLC0415  Triton and torch are slow to import, and no other probe's

    launch, _ = prepare(elements=128, block_size=128)
    return _time(launch, launches)
