"""A vector addition: CUDA beside Numba's CUDA simulator, Triton beside Triton's own interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness import Contender, Figure, Of, Peer, at_least, at_most, probe, require_close, spread, take_turns
from launches import kernel

THREADS = 256
SECONDS_TARGET = 0.3
NUMBA_TARGET = 1000.0
TRITON_TARGET = 50.0
BLOCK_SIZE = 1024


def make_arrays(elements: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Two vectors of random numbers and one of zeros, all of them written, so that their pages are there."""
    generator = np.random.default_rng(0)
    a, b = (generator.random(elements, np.float32) for _ in range(2))
    return a, b, np.full(elements, 0, np.float32)


def measure(quick: bool) -> Iterator[Figure]:
    """The large launch first, then each peer."""
    elements, rounds = (1 << 16, 2) if quick else (1 << 24, 7)
    seconds = _launches(elements, rounds)
    best = min(seconds)
    yield Figure(
        f"CUDA vec_add of {elements} elements", best, "s", target=at_most(SECONDS_TARGET), samples=seconds,
        details={"elements_per_s": elements / best, **spread(seconds)},
    )  # fmt: skip
    yield from _beside_numba(elements / best, quick)
    yield from _beside_triton(quick)


def _launches(elements: int, rounds: int) -> list[float]:
    a, b, c = make_arrays(elements)
    launch = kernel("vec_add.cu", "vec_add")[-(-elements // THREADS), THREADS]
    seconds = take_turns({"launch": Contender(lambda: launch(a, b, c, elements))}, rounds)["launch"]
    require_close("vec_add", float(np.abs(c - (a + b)).max()), 0.0)
    return seconds


def _beside_numba(rate: float, quick: bool) -> Iterator[Figure]:
    elements, rounds = (512, 1) if quick else (4096, 5)
    found = probe(
        "peers.numba_simulator", "measure", {"NUMBA_ENABLE_CUDASIM": "1"}, elements=elements, rounds=rounds
    )  # fmt: skip
    require_close("Numba's simulator", found["error"][0], 0.0)
    peer = Peer(f"Numba's simulator, {elements} elements", elements / min(found["seconds"]))
    samples = found["seconds"]
    yield Figure(
        "CUDA vec_add, over Numba's simulator", rate, "elements/s", peer, at_least(NUMBA_TARGET, Of.RATIO), samples
    )
    same = _launches(elements, 20)
    yield Figure(f"the same, {elements} elements in both", elements / min(same), "elements/s", peer, samples=same)


def _beside_triton(quick: bool) -> Iterator[Figure]:
    elements, rounds = (1 << 14, 1) if quick else (1 << 20, 5)
    arguments = {"elements": elements, "block_size": BLOCK_SIZE, "rounds": rounds}
    peer = probe("peers.triton_add", "measure", {"TRITON_INTERPRET": "1"}, **arguments)
    ours = probe("peers.triton_add", "measure", {"TRITON_INTERPRET": "0"}, **arguments)
    require_close("Triton's interpreter", peer["error"][0], 0.0)
    require_close("Triton on triptych", ours["error"][0], 0.0)
    yield Figure(
        f"Triton add of {elements} elements, blocks of {BLOCK_SIZE}", elements / min(ours["seconds"]), "elements/s",
        Peer("Triton's interpreter", elements / min(peer["seconds"])), at_least(TRITON_TARGET, Of.RATIO),
        ours["seconds"], details={"interpreter_best_s": min(peer["seconds"]), **spread(ours["seconds"])},
    )  # fmt: skip
