"""Block barriers that are not plainly for all threads are refused, not taken for one that is."""

import numpy as np
import pytest

import triptych as tt

SOURCE = """
extern "C" __global__ void named(int* y) {{
  y[threadIdx.x] = 1;
  asm volatile("{barrier}" ::: "memory");
}}
"""


@pytest.mark.parametrize(
    ("barrier", "what"),
    [
        ("bar.sync 1;", "other than 0"),
        ("bar.sync 0, 64;", "number of threads"),
        ("bar.sync 1, 64;", "other than 0"),
        ("barrier.sync 3;", "other than 0"),
        ("{{ .reg .pred p; setp.eq.u32 p, 0, 0; @p bar.sync 0; }}", "under a guard"),
    ],
)
def test_refused(barrier: str, what: str) -> None:
    y = np.zeros(128, np.int32)
    source = SOURCE.format(barrier=barrier.replace("{{", "{").replace("}}", "}"))
    with pytest.raises(tt.UnsupportedFeature, match=f"{what}.*is not supported") as caught:
        tt.cuda.compile(source, arch="sm_80")["named"][1, 128](y)
    assert caught.value.where is not None
    assert not y.any()


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 0;"])
def test_all_threads(barrier: str) -> None:
    y = np.zeros(128, np.int32)
    tt.cuda.compile(SOURCE.format(barrier=barrier), arch="sm_80")["named"][1, 128](y)
    assert y.all()


def test_limits_of_local_and_static_shared_memory() -> None:
    y = np.zeros(32, np.int32)
    local = """extern "C" __global__ void k(int* y, int i) {
        volatile int a[200000]; a[i] = 1; y[0] = a[i + 1]; }"""
    with pytest.raises(tt.LaunchError, match="800000 bytes of local memory a thread; the limit is 524288"):
        tt.cuda.compile(local, arch="sm_80")["k"][1, 32](y, 3)
    shared = """extern "C" __global__ void k(int* y) {
        __shared__ int s[20000]; s[threadIdx.x] = 1; __syncthreads(); y[threadIdx.x] = s[31 - threadIdx.x]; }"""
    with pytest.raises(tt.LaunchError, match="80000 bytes of static shared memory; ptxas refuses more than 49152"):
        tt.cuda.compile(shared, arch="sm_80")["k"][1, 32](y)
