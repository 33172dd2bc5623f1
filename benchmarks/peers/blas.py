"""numpy's own matrix product; its threads are set by the environment before numpy is imported."""

from __future__ import annotations

import time

import numpy as np


def measure(extent: int, rounds: int) -> dict[str, list[float]]:
    """GFLOP/s of each round."""
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal((extent, extent), np.float32) for _ in range(2))
    result = np.empty_like(left)
    np.matmul(left, right, out=result)
    rates: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        np.matmul(left, right, out=result)
        rates.append(2e-9 * extent**3 / (time.perf_counter() - start))
    return {"gflops": rates}
