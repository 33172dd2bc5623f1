"""Launches of a kernel in one shape, one after the other: what they work with is used again, and holds nothing old."""

from __future__ import annotations

import itertools
from _thread import start_new_thread
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import triptych as tt
from triptych.core.launches import Account
from triptych.gpu.run import stage, workers
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import Worker, make_worker

SOURCE = """
extern "C" __global__ void add(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] += a[i];
}
extern "C" __global__ void grow(float* a, int n) {
    for (int i = 0; i < n; i++) a[threadIdx.x] += 1;
}
extern "C" __global__ void sum(const int* a, int* out) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, a[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}
"""
MODULE = tt.cuda.compile(SOURCE, arch="sm_90")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The workers that were made; the stages begin with none."""
    found: list[object] = []

    def make(kernel: Kernel, geometry: Geometry) -> Worker:
        found.append(worker := make_worker(kernel, geometry))
        return worker

    monkeypatch.setattr(stage, "make_worker", make)
    stage.stage_of.cache_clear()
    yield found
    stage.stage_of.cache_clear()


def counters(launch: tt.LaunchReport) -> dict[str, float]:
    return {name: counter.value for name, counter in launch.counters.items()}


def test_workers_are_used_again_and_count_from_nothing(made: list[object]) -> None:
    a, b = np.ones(100, np.float32), np.zeros(100, np.float32)
    with tt.scope(workers=1):
        seen = [MODULE["add"][4, 32](a, b, 100) for _ in range(3)]
    assert len(made) == 1
    assert [counters(launch) for launch in seen] == [counters(seen[0])] * 3
    assert seen[0].counters["global.store.compulsory_bytes"].value == 448  # pairs of sectors: 64 bytes each
    assert b.tolist() == [3.0] * 100


def test_shapes_and_kernels_have_workers_of_their_own(made: list[object]) -> None:
    a, out = np.arange(64, dtype=np.int32), np.zeros(4, np.int32)
    for grid, block in itertools.product((1, 4), (32, 64)):
        MODULE["sum"][grid, block](a, out)
        assert out[:grid].tolist() == [sum(range(block))] * grid
    assert len(made) >= 4


def test_arrays_that_come_and_go_are_found_where_they_are() -> None:
    for size in (32, 64, 32, 1000, 32):
        a, b = np.full(size, 2, np.float32), np.ones(size, np.float32)
        launch = MODULE["add"][-(-size // 32), 32](a, b, size)
        assert b.tolist() == [3.0] * size
        assert launch.counters["global.load.bytes"].value == 8 * size


def test_a_fault_leaves_nothing_behind(made: list[object]) -> None:
    a, b = np.ones(32, np.float32), np.zeros(32, np.float32)
    before = counters(MODULE["add"][4, 32](a, b, 32))
    with pytest.raises(tt.MemoryFault):
        MODULE["add"][4, 32](a, b, 100)
    assert counters(MODULE["add"][4, 32](a, b, 32)) == before
    assert b.tolist() == [3.0] * 32  # the fault was another block's


def test_what_one_launch_left_of_a_view_is_not_told_of_the_next() -> None:
    whole, b = np.ones(64, np.float32), np.zeros(64, np.float32)
    beside = MODULE["add"][2, 32](whole[:40], b, 64)
    assert [finding.check for finding in beside.findings] == ["viewcheck"]
    assert MODULE["add"][2, 32](whole, b, 64).findings == ()


def test_counters_are_worked_out_when_somebody_asks() -> None:
    asked: list[int] = []

    def count() -> tuple[tt.Counters, tuple[tt.Line, ...]]:
        asked.append(1)
        return tt.Counters({}), ()

    account = Account(count)
    assert not asked
    assert (len(account.counters), account.lines) == (0, ())
    assert asked == [1]


def test_a_report_keeps_what_its_own_launch_counted() -> None:
    a, b = np.ones(256, np.float32), np.zeros(256, np.float32)
    few, many = MODULE["add"][1, 32](a, b, 32), MODULE["add"][1, 256](a, b, 256)
    assert (few.counters["flops.f32"].value, many.counters["flops.f32"].value) == (32, 256)


def test_the_calling_thread_runs_what_is_brief_and_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    def start(work: Callable[[Worker], object], given: tuple[Worker]) -> int:
        started.append(given)
        return start_new_thread(work, given)

    a, b = np.ones(32, np.float32), np.zeros(32, np.float32)
    for _ in range(2):  # the code is made at the first
        started.clear()
        monkeypatch.setattr(workers, "start_new_thread", start)
        with tt.scope(workers=2):
            MODULE["add"][8, 32](a, b, 32)
    assert not started
    with tt.scope(workers=1):
        MODULE["grow"][1, 32](b, 3)  # a loop may be long
        assert len(started) == 1
        MODULE["add"][4096, 32](a, b, 32)
    assert len(started) == 2
    assert b.tolist() == [6.0] * 32
