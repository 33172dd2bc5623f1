"""Bodies that attract each other, by tiles of shared memory, in both precisions and with fast mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from family import Doubles, blocks, module, normal


def moved(bodies: Doubles, speeds: Doubles, softening: float, time: float) -> tuple[Doubles, Doubles]:
    place, mass = bodies[:, :3], bodies[:, 3]
    apart = place[None] - place[:, None]
    strength = mass[None] * ((apart**2).sum(2) + softening) ** -1.5
    speed = speeds[:, :3] + (apart * strength[:, :, None]).sum(1) * time
    return place + speed * time, speed


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("count", "threads"), [(1, 32), (31, 64), (100, 48), (130, 128)])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_step(kind: str, count: int, threads: int, fast: bool) -> None:
    dtype = np.float32 if kind == "float" else np.float64
    bodies, speeds = normal(count, count, 4).astype(dtype), normal(7, count, 4).astype(dtype)
    bodies[:, 3] = np.abs(bodies[:, 3])
    wanted = moved(bodies.astype(np.float64), speeds.astype(np.float64), 0.01, 0.001)
    options = ("--use_fast_math",) if fast else ()
    found = np.zeros_like(bodies)
    kernel = module("bodies", "step<float>", "step<double>", options=options)[f"step<{kind}>"]
    kernel[blocks(count, threads), threads, threads * 4 * bodies.itemsize](bodies, found, speeds, 0.01, 0.001, count)
    tolerance = 1e-12 if kind == "double" else 2e-5
    np.testing.assert_allclose(found[:, :3], wanted[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(speeds[:, :3], wanted[1], rtol=tolerance, atol=tolerance)
    assert np.array_equal(found[:, 3], bodies[:, 3])
