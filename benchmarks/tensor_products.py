"""Products of matrices on tensor cores, and attention: Triton beside its own interpreter, and our CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness import Contender, Figure, Of, Peer, at_least, at_most, probe, require_close, spread, take_turns
from triptych.kernels.cuda.attention import attention_mma, attention_wgmma
from triptych.kernels.cuda.matmul import matmul_mma, matmul_wgmma

Halves = NDArray[np.float16]
RATE_TARGET = 20.0
"""GFLOP/s."""
SECONDS_TARGET = 1.0
INTERPRETER_TILES = ((64, 64), (128, 64), (256, 128))
"""Sides and depths, of which the interpreter's best is taken."""


def measure(quick: bool) -> Iterator[Figure]:
    """With counters and checks on, and as many workers as there are cores."""
    extent, rounds = (128, 1) if quick else (1024, 9)
    yield from _triton(extent, rounds, quick)
    for name, product in (("mma.sync + cp.async", matmul_mma), ("wgmma + TMA", matmul_wgmma)):
        yield _product(name, partial(product, out_dtype="f32"), extent, rounds)
    for name, attention in (("mma.sync", attention_mma), ("wgmma + TMA", attention_wgmma)):
        for causal in (False, True):
            yield _attention(name, partial(attention, causal=causal), causal, 128 if quick else 1024, rounds)


def _triton(extent: int, rounds: int, quick: bool) -> Iterator[Figure]:
    operations = 2e-9 * extent**3
    sizes = {"extent": extent, "tile": 128, "depth": 32, "warps": 4, "rounds": rounds}
    ours = probe("peers.triton_matmul", "measure", {"TRITON_INTERPRET": "0"}, **sizes)
    require_close("Triton's product on triptych", ours["error"][0], 1e-3)
    best, tile = np.inf, 0
    for side, depth in INTERPRETER_TILES[:1] if quick else INTERPRETER_TILES:
        chosen = {**sizes, "tile": side, "depth": depth, "rounds": 1}
        peer = probe("peers.triton_matmul", "measure", {"TRITON_INTERPRET": "1"}, **chosen)
        require_close("Triton's interpreter", peer["error"][0], 0.1)
        best, tile = min((best, tile), (min(peer["seconds"]), side))
    rate, samples = operations / min(ours["seconds"]), ours["seconds"]
    yield Figure(
        f"Triton f16 {extent}³, sm_80, tiles of 128×128×32", rate, "GFLOP/s", target=at_least(RATE_TARGET),
        samples=samples, details=spread(samples),
    )  # fmt: skip
    peer = Peer(f"Triton's interpreter, its best tile ({tile})", operations / best)
    yield Figure("the same, over Triton's interpreter", rate, "GFLOP/s", peer, at_least(1.0, Of.RATIO), samples)


def _product(name: str, product: Callable[[Halves, Halves], NDArray[np.float32]], extent: int, rounds: int) -> Figure:
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((extent, extent)).astype(np.float16) for _ in range(2))
    error = np.abs(product(a, b) - a.astype(np.float32) @ b.astype(np.float32)).max()
    require_close(name, float(error), 1e-3)
    seconds = take_turns({name: Contender(lambda: product(a, b))}, rounds)[name]
    return Figure(
        f"CUDA f16 {extent}³, {name}", 2e-9 * extent**3 / min(seconds), "GFLOP/s", target=at_least(RATE_TARGET),
        samples=seconds, details=spread(seconds),
    )  # fmt: skip


def _attention(
    name: str, attention: Callable[[Halves, Halves, Halves], Halves], causal: bool, length: int, rounds: int
) -> Figure:
    shape = (1, 4, length, 64)
    generator = np.random.default_rng(1)
    q, k, v = (generator.standard_normal(shape).astype(np.float16) for _ in range(3))
    require_close(name, float(np.abs(attention(q, k, v) - _reference(q, k, v, causal)).max()), 2e-3)
    seconds = take_turns({name: Contender(lambda: attention(q, k, v))}, rounds)[name]
    kind = "causal" if causal else "full"
    return Figure(
        f"CUDA FlashAttention {'×'.join(map(str, shape))} f16, {kind}, {name}", min(seconds), "s",
        target=at_most(SECONDS_TARGET), samples=seconds, details=spread(seconds),
    )  # fmt: skip


def _reference(q: Halves, k: Halves, v: Halves, causal: bool) -> NDArray[np.float64]:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v.astype(np.float64)
