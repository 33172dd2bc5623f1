"""Clusters of blocks, which are not there yet: a kernel compiled for them is refused, never run as clusters of one."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt
from triptych.gpu import load

SOURCE = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(int *x) { x[blockIdx.x] = 1; }
extern "C" __global__ void __cluster_dims__(1, 1, 1) one(int *x) { x[blockIdx.x] = 1; }
extern "C" __global__ void plain(int *x) { x[blockIdx.x] = 1; }
"""
MODULE = tt.cuda.compile(SOURCE, arch="sm_90")


def test_the_entry_says_which_cluster_it_was_compiled_for() -> None:
    entries = load(MODULE.ptx).entries
    assert {name: (entry.required_cluster, entry.needs_cluster) for name, entry in entries.items()} == {
        "pair": ((2, 1, 1), True),
        "one": ((1, 1, 1), True),
        "plain": (None, False),
    }


def test_a_kernel_compiled_for_clusters_is_refused() -> None:
    x = np.zeros(4, np.int32)
    with tt.profile(chip="h100", target="sm_90") as profile:
        with pytest.raises(tt.UnsupportedFeature, match=r"pair runs in clusters of \(2, 1, 1\): clusters are not supp"):
            MODULE["pair"][4, 1](x)
        with pytest.raises(tt.LaunchError, match=r"grid \(3, 1, 1\) is no multiple of the cluster \(2, 1, 1\)"):
            MODULE["pair"][3, 1](x)
        with pytest.raises(tt.LaunchError, match=r"cluster \(4, 1, 1\), but the kernel was compiled for \(2, 1, 1\)"):
            MODULE["pair"].configure(grid=4, block=1, cluster=4)(x)
        with pytest.raises(tt.UnsupportedFeature, match="plain runs in clusters of"):
            MODULE["plain"].configure(grid=4, block=1, cluster=2)(x)
    assert profile.launches == []
    assert not x.any()


def test_clusters_of_one_block_run() -> None:
    x = np.zeros(4, np.int32)
    with tt.profile(chip="h100", target="sm_90"):
        MODULE["one"][3, 1](x)
    assert x.tolist() == [1, 1, 1, 0]
