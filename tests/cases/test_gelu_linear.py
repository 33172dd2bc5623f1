"""Case: y = GELU(W x + b), x a vector, as three kernels and as one: one result, and the intermediates' bytes gone.

The kernels are those of `triptych demo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from case_helpers import total

import triptych as tt
from triptych.demo.problems import gelu_problem

SHAPES = ((128, 384), (50, 77), (1, 1))
"""Of W: in whole tiles, and in none."""
GPU = ("global.load.compulsory_bytes", "global.store.compulsory_bytes")
NEURON = ("dma.load.bytes", "dma.store.bytes")


def pairs(elements: int) -> int:
    """Bytes of the 64-byte pairs of sectors that so many f32 take, from an array's start."""
    return -(-4 * elements // 64) * 64


def solved(module: str, shape: tuple[int, int], profile: tt.Profile) -> tuple[Sequence[tt.LaunchReport], ...]:
    """Solves the problem both ways, checks the results, and gives the launches of each way."""
    kernels: Any = import_module(f"triptych.demo.kernels.{module}")
    problem = gelu_problem(*shape)
    kept = [array.copy() for array in problem.inputs]
    for solve in (kernels.gelu_linear_unfused, kernels.gelu_linear_fused):
        result = solve(*problem.inputs)
        assert result.dtype == np.float32
        assert problem.largest_error(result) <= 1.0
    assert all(np.array_equal(*pair) for pair in zip(problem.inputs, kept, strict=True))
    assert [launch.kernel for launch in profile.launches] == ["matvec", "add_bias", "gelu", "gelu_linear"]
    assert all(not launch.findings for launch in profile.launches)
    return profile.launches[:3], profile.launches[3:]


def check_traffic(apart: Sequence[tt.LaunchReport], fused: Sequence[tt.LaunchReport], m: int, k: int) -> None:
    """Fused, W, x and b are read once and y is written; apart, two vectors more are written and read."""
    load, store = NEURON if fused[0].language == "nki" else GPU
    assert total(list(fused), load) == pairs(m * k) + pairs(k) + pairs(m)
    assert total(list(fused), store) == pairs(m)
    for counter in (load, store):
        assert total(list(apart), counter) - total(list(fused), counter) == 2 * pairs(m)


@pytest.mark.parametrize("shape", SHAPES)
def test_cuda(shape: tuple[int, int], profile: tt.Profile) -> None:
    apart, fused = solved("cuda_host", shape, profile)
    check_traffic(apart, fused, *shape)
    useful = ("global.load.bytes", "global.store.bytes")
    assert total(list(apart), *useful) - total(list(fused), *useful) == 2 * 2 * 4 * shape[0]
    assert total(list(apart), "flops.f32") == total(list(fused), "flops.f32"), "the same arithmetic"


@pytest.mark.parametrize("shape", SHAPES)
def test_triton(shape: tuple[int, int], triton_sm80: tt.Profile) -> None:
    apart, fused = solved("triton_kernels", shape, triton_sm80)
    check_traffic(apart, fused, *shape)
    assert not any(name.startswith("flops.tensor") for launch in (*apart, *fused) for name in launch.counters)


@pytest.mark.usefixtures("nki_active")
@pytest.mark.parametrize("shape", [(128, 384), (256, 128)])
def test_nki(shape: tuple[int, int], profile: tt.Profile) -> None:
    apart, fused = solved("nki_kernels", shape, profile)
    check_traffic(apart, fused, *shape)
    for launches in (apart, fused):
        assert total(list(launches), "flops.tensor.f32") == 2 * shape[0] * shape[1]
