"""Launches that are only timed: a part of the blocks runs, and the model's figures are for all of them."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import KernelFault
from triptych.execution.timing import only_timed
from triptych.gpu.run.geometry import Geometry, order_of

SOURCE = """
extern "C" __global__ void twice(float* x, const float* same) {
    int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    x[i] = 2 * x[i] + same[threadIdx.x];
}
extern "C" __global__ void after_the_one_before(volatile int* flags) {
    if (threadIdx.x == 0) {
        if (blockIdx.x) while (flags[blockIdx.x - 1] == 0) {}
        flags[blockIdx.x] = 1;
    }
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) ranks(int* x) {
    if (threadIdx.x == 0) x[blockIdx.x] = 1;
}
"""
MODULE = tt.cuda.compile(SOURCE, arch="sm_90")
CASES = [(clusters, most) for clusters in (2, 3, 10, 97, 132, 1024, 2048) for most in (1, 2, 16, 97) if most < clusters]


@pytest.mark.parametrize(("clusters", "most"), CASES)
def test_a_sample_lies_evenly_in_the_grid(clusters: int, most: int) -> None:
    order = order_of(clusters, most)
    assert order is not None
    assert 1 <= len(order) <= most
    assert gcd(order.step, clusters) == 1
    before, behind = order[0], clusters - 1 - order[-1]
    assert max(before, behind) < order.step
    assert abs(before - behind) <= 1
    assert order_of(clusters, most, descending=True) == order[::-1]


def test_all_blocks_are_no_sample() -> None:
    assert order_of(4, None) is None
    assert order_of(4, 4) is None
    assert order_of(4, 9, descending=True) == range(3, -1, -1)


def test_numbers_are_those_of_the_order() -> None:
    geometry = Geometry((6, 2, 1), (32, 1, 1), 0, order=range(1, 12, 5))
    assert geometry.blocks == 3
    assert [geometry.block_index(number) for number in range(3)] == [(1, 0, 0), (0, 1, 0), (5, 1, 0)]


def test_what_a_sample_counts_and_stands_for() -> None:
    x, same = np.ones((64, 256), np.float32), np.zeros(256, np.float32)
    with only_timed(), tt.scope(benchmark_blocks=7):
        part = MODULE["twice"][(16, 4), 256](x, same)
    blocks = part.record.sample.blocks if part.record.sample else 0
    assert (x == 2).all(1).sum() == (x != 1).any(1).sum() == blocks == 6
    whole = MODULE["twice"][(16, 4), 256](x, same)
    assert whole.record.sample is None
    for name in ("instructions.warp", "global.load.sectors", "flops.f32"):
        assert part.counters.value(name) * 64 == whole.counters.value(name) * blocks, name
    assert part.roofline.roofs == whole.roofline.roofs, "what all blocks share counts once, as there"
    assert part.roofline.estimate_s == whole.roofline.estimate_s
    assert f"Timed by a sample: {blocks} of 64 blocks ran" in " ".join(part.notes)
    assert not [note for note in whole.notes if "sample" in note]


def test_only_what_is_timed_alone_is_sampled() -> None:
    x, same = np.ones((8, 256), np.float32), np.zeros(256, np.float32)
    with tt.scope(benchmark_blocks=2):
        assert MODULE["twice"][8, 256](x, same).record.sample is None
    assert (x == 2).all()


def test_a_fault_says_that_not_all_blocks_ran() -> None:
    with only_timed(), tt.scope(benchmark_blocks=2, budget=256), pytest.raises(KernelFault) as caught:
        MODULE["after_the_one_before"][16, 32](np.zeros(16, np.int32))
    assert "only 2 blocks were to run, to be timed (TRIPTYCH_BENCHMARK_BLOCKS)" in str(caught.value.hint)
    with only_timed(), tt.scope(benchmark_blocks=16):
        MODULE["after_the_one_before"][16, 32](np.zeros(16, np.int32))


def test_clusters_run_as_wholes() -> None:
    x = np.zeros(32, np.int32)
    with only_timed(), tt.scope(benchmark_blocks=5):
        launch = MODULE["ranks"][32, 32](x)
    assert launch.record.sample is not None
    assert np.flatnonzero(x[::2]).tolist() == np.flatnonzero(x[1::2]).tolist()
    assert x.sum() == launch.record.sample.blocks == 4
