"""Barriers of a block: who is told of, and what is refused."""

import re

import numpy as np
import pytest

import triptych as tt

SOURCE = """
extern "C" __global__ void named(int* y) {{
  y[threadIdx.x] = 1;
  asm volatile("{barrier}" ::: "memory");
}}
"""


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 0;", "bar.sync 7;", "bar.cta.sync 3, 128;"])
def test_all_threads(barrier: str) -> None:
    y = np.zeros(128, np.int32)
    tt.cuda.compile(SOURCE.format(barrier=barrier), arch="sm_80")["named"][1, 128](y)
    assert y.all()


def test_who_waits_where() -> None:
    source = """extern "C" __global__ void k(int* y) {
        if (threadIdx.x < 64)
            asm volatile("bar.sync 3, 96;");
        else if (threadIdx.x < 96)
            asm volatile("bar.sync 4, 128;");
        y[threadIdx.x] = 1; }"""
    with pytest.raises(tt.DeadlockError) as caught:
        tt.cuda.compile(source, arch="sm_80")["k"][2, 128](np.zeros(128, np.int32))
    first, *places = caught.value.message.splitlines()
    assert first == "kernel k: threads of block (0,0,0) wait for each other and none can go on:"
    assert re.fullmatch(
        r"  64 threads of 1 block wait at 'bar\.sync' \(barrier 3: 64 of 96 threads have arrived\), .*:28", places[0]
    )
    assert re.fullmatch(
        r"  32 threads of 1 block wait at 'bar\.sync' \(barrier 4: 32 of 128 threads have arrived\), .*:30", places[1]
    )
    assert caught.value.block == (0, 0, 0)


@pytest.mark.parametrize(
    ("barrier", "message"),
    [
        ("bar.sync 16;", "names barrier 16"),
        ("bar.sync 1, 40;", "waits for 40 threads"),
        ("barrier.sync 1, 0;", "waits for 0 threads"),
    ],
)
def test_barriers_that_cannot_be(barrier: str, message: str) -> None:
    with tt.profile(chip="h100") as profile, pytest.raises(tt.BarrierMisuse, match=message) as caught:
        tt.cuda.compile(SOURCE.format(barrier=barrier), arch="sm_80")["named"][1, 128](np.zeros(128, np.int32))
    assert caught.value.where is not None
    (found,) = profile.findings
    assert (found.check, found.severity, found.where) == ("synccheck", tt.Severity.ERROR, caught.value.where)


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
