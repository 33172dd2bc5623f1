"""Fusion: k elementwise steps in k launches, and in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.kernels.arrays import blocks
from triptych.kernels.triton.machine import machine
from triptych.memory_wall.experiment import CHIPS, Axis, Experiment, Point, launches
from triptych.memory_wall.small_kernels import cuda_kernel, nki_steps, steps_with_triton

Array = NDArray[Any]
_STEPS = (1, 2, 4, 8)
_THREADS, _BLOCK, _ROW = 256, 1024, 1024


def _with_cuda(x: Array, count: int) -> Array:
    y = np.empty_like(x)
    cuda_kernel("steps")[blocks(x.size, _THREADS), _THREADS](x, y, x.size, count)
    return y


def _with_triton(x: Array, count: int) -> Array:
    y = np.empty_like(x)
    with machine():
        steps_with_triton[blocks(x.size, _BLOCK),](x, y, x.size, count, BLOCK=_BLOCK)
    return y


def _with_nki(x: Array, count: int) -> Array:
    return np.asarray(nki_steps(x.reshape(-1, _ROW), count)).reshape(-1)


_CARRIED_OUT: Mapping[str, Callable[[Array, int], Array]] = {
    "CUDA C++": _with_cuda,
    "Triton": _with_triton,
    "NKI": _with_nki,
}


def _in_launches(run: Callable[[Array, int], Array], x: Array, count: int) -> Array:
    """A step a launch."""
    for _ in range(count):
        x = run(x, 1)
    return x


def _in_one(run: Callable[[Array, int], Array], x: Array, count: int) -> Array:
    return run(x, count)


_WAYS: Mapping[str, Callable[[Callable[[Array, int], Array], Array, int], Array]] = {
    "a launch a step": _in_launches,
    "one launch": _in_one,
}


def _run(quick: bool) -> Iterator[Point]:
    n = 1 << (17 if quick else 20)
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    for language, run in _CARRIED_OUT.items():
        for way, call in _WAYS.items():
            for count in _STEPS[:2] if quick else _STEPS:
                reports = launches(CHIPS[language], partial(call, run, x, count))
                moved = sum(report.roofline.bytes for report in reports)
                yield Point(f"{language}, {way}", count, moved, 2 * x.nbytes * len(reports))


FUSION = Experiment(
    name="fusion",
    title="Steps in launches of their own, and in one",
    formula="k steps on n elements: 2 k n elements move in k launches, 2 n in one",
    measured="x ← x / 2 + 1, k times, on 2²⁰ elements of f32. Bytes at the level of DRAM (HBM on NKI), each launch's"
    " reads and writes, counted.",
    finding="To the byte. The FLOPs are the same, so that the intensity of the fused launch is k times as high.",
    within=0.01,
    x=Axis("k"),
    y=Axis("bytes", "B"),
    run=_run,
)
