"""What a fault knows in values is what its text says, and where its finding is."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.gpu.check.faults import TELLERS
from triptych.gpu.lower.records import FaultKind
from triptych.gpu.lower.scheduling.barriers import build_barriers
from triptych.gpu.lower.scheduling.scheduler import build_scheduler
from triptych.gpu.lower.scheduling.services import build_services

GUARD = "if (threadIdx.x == 5 && threadIdx.y == 3 && threadIdx.z == 1 && blockIdx.x == 1)"
SOURCE = (
    """
__device__ __forceinline__ void put(float *p, long long i, float value) { p[i] = value; }
extern "C" __global__ void read(const float *p, float *out, long long i) {
    GUARD out[0] = p[i];
}
extern "C" __global__ void write(float *p, float *out, long long i) {
    GUARD
        put(p, i, 1);
}
extern "C" __global__ void add(float *p, float *out, long long i) {
    GUARD atomicAdd(p + i, 1.0f);
}
extern "C" __global__ void add_to_fixed(const float *p, float *out, long long i) {
    GUARD atomicAdd((float *)p + i, 1.0f);
}
extern "C" __global__ void shared(float *p, float *out, long long i) {
    extern __shared__ float tile[];
    GUARD tile[i] = 1;
}
extern "C" __global__ void local(float *p, float *out, long long i) {
    float own[8];
    for (int k = 0; k < 8; k++) own[k] = p[k];
    GUARD out[0] = own[i];
}
extern "C" __global__ void trap(float *p, float *out, long long i) {
    GUARD __trap();
}
extern "C" __global__ void spin(float *p, float *out, long long i) {
    if (blockIdx.x == 1) for (float x = 0; x >= 0; x += i) out[0] = p[0] * x;
}
"""
).replace("GUARD", GUARD)
GRID, BLOCK = (2, 1, 1), (8, 4, 2)
THREAD, IN_BLOCK = (5, 3, 1), (1, 0, 0)
VERBS = {"load": "read", "store": "write", "atomic": "atomic"}


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_90")


def caught(module: tt.cuda.CudaModule, kernel: str, p: object, i: int) -> tuple[tt.KernelFault, tt.LaunchReport]:
    with tt.profile(chip="h100") as profile, pytest.raises(tt.KernelFault) as error:
        module[kernel][GRID, BLOCK, 64](p, np.zeros(64, np.float32), i)
    return error.value, profile.launches[-1]


def index(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def said(fault: tt.MemoryFault) -> tuple[object, ...]:
    """What the text says: space, verb, bytes, kernel, thread, block, address."""
    match = re.match(
        r"Invalid __(\w+)__ (\w+) of size (\d+) bytes in kernel (\w+)\n"
        r"  by thread \(([\d,]+)\) in block \(([\d,]+)\)\n  address (0x[0-9a-f]+) ",
        fault.message,
    )
    assert match is not None, fault.message
    space, verb, size, kernel, thread, block, address = match.groups()
    return space, verb, int(size), kernel, index(thread), index(block), int(address, 16)


@pytest.mark.parametrize(
    ("kernel", "i", "access", "space", "offset"),
    [
        ("read", 64, "load", "global", 256),
        ("read", -1, "load", "global", -4),
        ("write", 65, "store", "global", 260),
        ("add", 64, "atomic", "global", 256),
        ("shared", 16, "store", "shared", None),
        ("local", 8, "load", "local", None),
    ],
)
def test_an_access_out_of_bounds(
    kernel: str, i: int, access: str, space: str, offset: int | None, module: tt.cuda.CudaModule
) -> None:
    p = np.zeros(64, np.float32)
    fault, launch = caught(module, kernel, p, i)
    assert isinstance(fault, tt.MemoryFault)
    assert (fault.kernel, fault.thread, fault.block) == (kernel, THREAD, IN_BLOCK)
    assert (fault.access, fault.space, fault.bytes) == (access, space, 4)
    assert said(fault) == (space, VERBS[access], 4, kernel, THREAD, IN_BLOCK, fault.address)
    if offset is None:
        assert fault.allocation is None
    else:
        assert fault.address == tt.data_ptr(p) + offset
        assert f"'{fault.allocation}' (argument 0, p) at {tt.data_ptr(p):#x} of 256 bytes" in fault.message
    (finding,) = launch.findings
    assert (finding.check, finding.message) == ("memcheck", fault.message)
    assert (finding.where, finding.frames) == (fault.where, fault.frames)
    assert (finding.thread, finding.block) == (THREAD, IN_BLOCK)
    assert fault.where is not None
    assert fault.where.text
    assert fault.where.text in fault.message


def test_the_callers_of_an_inlined_line(module: tt.cuda.CudaModule) -> None:
    fault, launch = caught(module, "write", np.zeros(64, np.float32), 64)
    assert fault.where is not None
    assert fault.where.text.startswith("__device__ __forceinline__ void put")
    assert [frame.text for frame in fault.frames] == ["put(p, i, 1);"]
    assert launch.findings[0].frames == fault.frames


def test_null_misaligned_and_read_only(module: tt.cuda.CudaModule) -> None:
    null, _ = caught(module, "read", None, 0)
    assert isinstance(null, tt.MemoryFault)
    assert (null.address, null.allocation) == (0, None)
    p = np.zeros(64, np.float32)
    odd, _ = caught(module, "read", tt.data_ptr(p) + 2, 0)
    assert isinstance(odd, tt.MemoryFault)
    assert (odd.address, odd.bytes, odd.allocation) == (tt.data_ptr(p) + 2, 4, None)
    fixed: NDArray[np.float32] = np.zeros(64, np.float32)
    fixed.flags.writeable = False
    kept, _ = caught(module, "add_to_fixed", fixed, 1)
    assert isinstance(kept, tt.MemoryFault)
    assert (kept.address, kept.access) == (tt.data_ptr(fixed) + 4, "atomic")
    assert f"lies in '{kept.allocation}' (argument 0, p), which is read-only" in kept.message


def test_a_trap_and_a_loop_without_an_end(module: tt.cuda.CudaModule) -> None:
    fault, launch = caught(module, "trap", np.zeros(64, np.float32), 0)
    assert type(fault) is tt.KernelFault
    assert (fault.kernel, fault.thread, fault.block) == ("trap", THREAD, IN_BLOCK)
    assert "trap executed by thread (5,3,1) in block (1,0,0)" in fault.message
    (finding,) = launch.findings
    assert (finding.check, finding.thread, finding.block) == ("trap", THREAD, IN_BLOCK)
    with tt.scope(budget=1000):
        hung, launch = caught(module, "spin", np.zeros(64, np.float32), 0)
    assert type(hung) is tt.BudgetExceeded
    assert (hung.kernel, hung.thread, hung.block) == ("spin", None, IN_BLOCK)
    assert "of block (1,0,0) ran more than 1000 loop iterations" in hung.message
    (finding,) = launch.findings
    assert (finding.check, finding.where, finding.block) == ("budget", hung.where, IN_BLOCK)
    assert launch.checks == ("memcheck", "assert", "trap", "budget", "deadlock", "synccheck", "viewcheck", "asynccheck")


def test_every_kind_of_fault_has_what_tells_it() -> None:
    assert TELLERS.keys() == set(FaultKind)


def test_what_generated_code_records_is_a_kind() -> None:
    code = "".join(str(build()) for build in (build_services, build_barriers, build_scheduler))
    calls = re.findall(r'call void @"triptych\.fault"\(ptr [^,]+, i64 ([^,]+),', code)
    recorded = [FaultKind(int(kind)) for kind in calls]
    barriers = {FaultKind.BARRIER_NUMBER, FaultKind.BARRIER_THREADS, FaultKind.BARRIER_MISMATCH}
    assert set(recorded) == {FaultKind.BUDGET, FaultKind.LAUNCH_BUDGET, FaultKind.DEADLOCK, *barriers}
    resolve = code[code.index('@"triptych.resolve"') :].split("\n}")[0]
    found = {FaultKind(kind) for kind in map(int, re.findall(r"ret i64 (\d+)", resolve)) if kind}
    assert found == {FaultKind.OUT_OF_BOUNDS, FaultKind.READ_ONLY}
