"""NKI: what it costs to trace a kernel, to execute its trace, and all of a large product."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import triptych as tt
from harness import Contender, Figure, Of, Peer, at_most, require_close, spread, take_turns, time_call
from triptych.execution.memory import memory
from triptych.execution.run import run_plan_here
from triptych.kernels.nki.attention import attention_forward
from triptych.kernels.nki.layer_norm import layer_norm
from triptych.kernels.nki.matmul import BLOCK_K, BLOCK_M, BLOCK_N, MOVING, matmul_fully_blocked, matmul_tiled
from triptych.kernels.nki.rms_norm import rms_norm
from triptych.kernels.nki.rope import rope
from triptych.kernels.nki.softmax import softmax
from triptych.kernels.nki.swiglu import swiglu
from triptych.kernels.nki.tiles import PARTITIONS
from triptych.languages.nki.launching.kernel import Kernel
from triptych.neuron.isa import from_json

CHIP = "trn2"
TRACING_TARGET_US = 40.0
EXECUTION_TARGET = 1.5
LARGE_TARGET_S = 15.0
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

Array = NDArray[Any]


def measure(quick: bool) -> Iterator[Figure]:
    """Tracing, execution beside numpy, and a product of matrices from its call to its result."""
    with tt.profile(chip=CHIP):
        yield from _tracing(2 if quick else 15, 256 if quick else 1024)
        yield from _execution(*((256, 1) if quick else (2048, 5)))
        yield _large(512 if quick else 4096)


def _random(*shape: int, dtype: np.dtype[Any] = BFLOAT16) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _tracing(rounds: int, size: int) -> Iterator[Figure]:
    """Processor time of a capture, to the text of its program, over the instructions of that."""
    traced = _traced(size)
    taken: dict[str, list[float]] = {name: [] for name in traced}
    with tt.scope(nki_keep_traces=False):
        for _ in range(rounds):  # in turn: the machine's slower moments fall on all of them
            for name, (kernel, arguments) in traced.items():
                start = time.process_time()
                kernel.capture(*arguments)
                taken[name].append(time.process_time() - start)
    cost = {name: 1e6 * min(taken[name]) / _instructions(*one) for name, one in traced.items()}
    median = statistics.median(cost.values())
    details: dict[str, float | str] = {f"{name}_us": one for name, one in cost.items()}
    target = at_most(TRACING_TARGET_US)
    yield Figure("tracing an instruction, the median kernel", median, "µs", target=target, details=details)
    slowest = max(cost, key=cost.__getitem__)
    yield Figure(f"tracing an instruction, the slowest kernel ({slowest})", cost[slowest], "µs")


def _traced(size: int) -> Mapping[str, tuple[Kernel, tuple[Array, ...]]]:
    """Kernels with their arguments."""
    square, wide = _random(size, size), _random(16 * size, size, dtype=np.dtype(np.float32))
    row = _random(size, dtype=np.dtype(np.float32))
    heads = _random(1, 2, size, 64, dtype=np.dtype(np.float32))
    tokens, angles = (
        _random(16 * size, 2, 64, dtype=np.dtype(np.float32)),
        _random(16 * size, 32, dtype=np.dtype(np.float32)),
    )
    return {
        "matmul_tiled": (matmul_tiled, (square, square)),
        "matmul_fully_blocked": (matmul_fully_blocked, (square, square)),
        "softmax": (softmax, (wide,)),
        "layer_norm": (layer_norm, (wide, row, row)),
        "rms_norm": (rms_norm, (wide, row)),
        "swiglu": (swiglu, (wide, wide)),
        "rope": (rope, (tokens, angles, angles)),
        "attention": (attention_forward, (heads, heads, heads)),
    }


def _instructions(kernel: Kernel, arguments: tuple[Array, ...]) -> int:
    return sum(map(len, from_json(kernel.capture(*arguments).program.text).programs))


def _execution(size: int, rounds: int) -> Iterator[Figure]:
    """A trace that is at hand, on data, beside numpy with the same tiles, dtypes and arithmetic."""
    a_t, b = _random(size, size), _random(size, size)
    capture = matmul_fully_blocked.capture(a_t, b)
    plan = capture.plan(memory())
    results: dict[str, Array] = {}

    def keep(name: str, run: Callable[[], Array]) -> Callable[[], None]:
        return lambda: results.update({name: run()})

    ours = keep("ours", lambda: run_plan_here(plan, memory()).outputs[0])
    numpys = keep("numpy", lambda: _by_tiles(a_t, b))
    seconds = take_turns({"ours": Contender(ours), "numpy": Contender(numpys)}, rounds)
    made, expected = (results[name].astype(np.float32) for name in ("ours", "numpy"))
    require_close("a product by tiles", float((np.abs(made - expected) / np.abs(expected).max()).max()), 2**-8)
    best = {name: min(taken) for name, taken in seconds.items()}
    yield Figure(
        f"executing a bf16 product {size}³, traced before", best["ours"], "s",
        Peer("numpy, the same tile by tile", best["numpy"]), at_most(EXECUTION_TARGET, Of.RATIO),
        samples=seconds["ours"], details=spread(seconds["ours"]),
    )  # fmt: skip


def _by_tiles(a_t: Array, b: Array) -> Array:
    """What `matmul_fully_blocked` does: sums of 128 products, added up, all in float32."""
    depth, (rows, columns) = b.shape[0], (a_t.shape[1], b.shape[1])
    made = np.empty((rows, columns), b.dtype)
    for column in range(0, columns, BLOCK_N):
        for row in range(0, rows, BLOCK_M):
            totals: dict[tuple[int, int], NDArray[np.float32]] = {}
            for block in range(0, depth, BLOCK_K):
                inner = range(block, min(block + BLOCK_K, depth), PARTITIONS)
                left = [a_t[at : at + PARTITIONS, row : row + BLOCK_M].copy() for at in inner]
                right = [b[at : at + PARTITIONS, column : column + BLOCK_N].copy() for at in inner]
                _add_block(totals, left, right)
            for (strip, tile), sums in totals.items():
                place = (slice(row + strip, row + strip + PARTITIONS), slice(column + tile, column + tile + MOVING))
                made[place] = sums.astype(b.dtype)
    return made


def _add_block(totals: dict[tuple[int, int], NDArray[np.float32]], left: list[Array], right: list[Array]) -> None:
    for strip in range(0, left[0].shape[1], PARTITIONS):
        for tile in range(0, right[0].shape[1], MOVING):
            sums = np.zeros(1, np.float32)
            for one, other in zip(left, right, strict=True):
                stationary = one[:, strip : strip + PARTITIONS].astype(np.float32)
                sums = sums + stationary.T @ other[:, tile : tile + MOVING].astype(np.float32)
            known = totals.get((strip, tile))
            totals[strip, tile] = sums if known is None else known + sums


def _large(size: int) -> Figure:
    """From the call to the result, tracing, verification, execution and counters included."""
    a_t, b = _random(size, size), _random(size, size)
    results: list[Array] = []
    seconds = time_call(lambda: results.append(matmul_fully_blocked(a_t, b)))
    expected = a_t.astype(np.float32).T @ b.astype(np.float32)
    error = np.abs(results[0].astype(np.float32) - expected).max() / np.abs(expected).max()
    require_close("a large product", float(error), 2**-7)
    return Figure(f"a bf16 product {size}³, from the call to the result", seconds, "s", target=at_most(LARGE_TARGET_S))
