"""NKI kernels of one text, here and in triton-viz's interpreters: from the call to the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import triptych as tt
from harness import Contender, Figure, Of, Peer, at_most, probe, require_close, take_turns
from peers import nki_kernels_beta1, nki_kernels_beta2
from peers.triton_viz_nki import Interpreter, beta1, beta2, require_installed
from triptych.languages.nki import nki, nki_beta1

TARGET = at_most(1 / 3, Of.RATIO)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Of numpy's products, on both sides: two wait for each other where the machine has other work."""
CHIP = "trn2"
D = 128
"""Elements of an attention head."""
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Compile = Callable[[Callable[..., object]], Callable[..., object]]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with its inputs, and what it is to make of them, computed in float64."""

    kernel: str
    inputs: tuple[Array, ...]
    expected: Doubles
    dtype: np.dtype[Any] = FLOAT32


@dataclass(frozen=True, slots=True)
class Side:
    """A generation of the language: its kernels, here and there."""

    name: str
    kernels: ModuleType
    compiled: Compile
    theirs: Interpreter
    cases: Iterator[Case]


def measure(quick: bool) -> Iterator[Figure]:
    """Each kernel in turn in both, in a process whose numpy has one thread."""
    require_installed()
    found = probe("nki_interpreters", "times", ONE_THREAD, quick=float(quick))
    labels = dict.fromkeys(label for label, _ in (name.split(SEPARATOR) for name in found))
    for label in labels:
        seconds = {run: found[label + SEPARATOR + run] for run in RUNS if label + SEPARATOR + run in found}
        yield Figure(
            label, min(seconds[OURS]), "s", Peer("triton-viz, with its tracer", min(seconds[THEIRS])), TARGET,
            seconds[OURS],
            details={f"{run}_s": min(taken) for run, taken in seconds.items() if run not in (OURS, THEIRS)},
        )  # fmt: skip


OURS, THEIRS, RETRACED, ALONE = RUNS = ("ours", "theirs", "ours, traced anew", "theirs without its tracer")
SEPARATOR = " | "


def times(quick: float) -> dict[str, list[float]]:
    """Seconds of each round by the kernel and who ran it."""
    rows, columns = (128, 512) if quick else (1024, 1024)
    sides = (
        Side("neuronxcc.nki", nki_kernels_beta1, nki_beta1.jit, beta1(), _cases(rows, columns, 1.0, 0.0)),
        Side("nki", nki_kernels_beta2, nki.jit, beta2(), _cases(rows, columns, math.sqrt(D), 1e-5)),
    )
    found: dict[str, list[float]] = {}
    for side in sides:
        for case in side.cases:
            with tt.profile(chip=CHIP):
                label, seconds = _beside(case, side, 1 if quick else 7)
            found |= {label + SEPARATOR + run: taken for run, taken in seconds.items()}
    return found


def _beside(case: Case, side: Side, rounds: int) -> tuple[str, dict[str, list[float]]]:
    kernel = getattr(side.theirs.module(Path(str(side.kernels.__file__))), case.kernel)
    ours = side.compiled(getattr(side.kernels, case.kernel))

    def retraced(*arguments: Array) -> object:
        with tt.scope(nki_keep_traces=False):
            return ours(*arguments)

    runs: dict[str, Callable[..., object]] = {OURS: ours, THEIRS: side.theirs.traced(kernel), RETRACED: retraced}
    if side.theirs.alone is not None:
        runs[ALONE] = side.theirs.alone(kernel)
    outputs = {name: np.zeros(case.expected.shape, case.dtype) for name in runs}
    shapes = ", ".join("×".join(map(str, one.shape)) for one in case.inputs)
    label = f"{side.name}: {case.kernel} of {shapes}, {case.dtype}"

    def contender(name: str) -> Contender:
        return Contender(lambda: runs[name](*case.inputs, outputs[name]))

    seconds = take_turns({name: contender(name) for name in runs}, rounds)
    for name, made in outputs.items():
        error = np.abs(made.astype(np.float64) - case.expected).max() / np.abs(case.expected).max()
        require_close(f"{label}, {name}", float(error), 2**-7 if case.dtype == BFLOAT16 else 1e-5)
    return label, seconds


def _cases(rows: int, columns: int, temperature: float, epsilon: float) -> Iterator[Case]:
    """The kernels' inputs; scores are divided by the temperature, and the norm's means are more by epsilon."""
    random = np.random.default_rng(0)

    def normal(*shape: int, dtype: np.dtype[Any] = FLOAT32) -> Array:
        return random.standard_normal(shape).astype(dtype)

    a, b = normal(rows, columns), normal(rows, columns)
    yield Case("add", (a, b), _wide(a) + _wide(b))
    yield Case("softmax", (a,), _softmax(_wide(a)))
    weight = np.broadcast_to(normal(1, columns), (128, columns)).copy()
    mean = (_wide(a) ** 2).mean(axis=1, keepdims=True)
    yield Case("rms_norm", (a, weight), _wide(a) / np.sqrt(mean + epsilon) * _wide(weight[:1]))
    for dtype in (FLOAT32, BFLOAT16):
        left, right = normal(rows, rows, dtype=dtype), normal(rows, columns, dtype=dtype)
        yield Case("matmul", (left, right), _wide(left).T @ _wide(right), dtype)
    q_t, k_t, v = normal(D, rows) * np.float32(temperature / math.sqrt(D)), normal(D, columns), normal(columns, D)
    yield Case("attention", (q_t, k_t, v), _softmax(_wide(q_t).T @ _wide(k_t) / temperature) @ _wide(v))


def _wide(array: Array) -> Doubles:
    return array.astype(np.float64)


def _softmax(x: Doubles) -> Doubles:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
