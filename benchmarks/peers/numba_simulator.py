"""Numba's CUDA simulator on a vector addition; run with NUMBA_ENABLE_CUDASIM=1."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import cuda as numba_cuda

THREADS = 256
cuda: Any = numba_cuda


@cuda.jit
def vec_add(a: Any, b: Any, c: Any) -> None:  # noqa: ANN401  arrays of the simulator
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


def measure(elements: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each launch, after one that is not timed; the arrays lie in the simulator's memory already."""
    host = np.arange(elements, dtype=np.float32)
    a, b, c = (cuda.to_device(array) for array in (host, host, np.zeros_like(host)))
    launch = vec_add[-(-elements // THREADS), THREADS]
    seconds: list[float] = []
    for turn in range(rounds + 1):
        start = time.perf_counter()
        launch(a, b, c)
        if turn:
            seconds.append(time.perf_counter() - start)
    error = float(np.abs(c.copy_to_host() - 2 * host).max())
    return {"seconds": seconds, "error": [error]}
