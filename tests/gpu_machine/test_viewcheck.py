"""viewcheck: what leaves the part of an array that was passed is told, and stays a legal access."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import triptych as tt
from triptych.core.launches import Finding, Severity
from triptych.core.settings import scope
from triptych.gpu.lower.records import StorageRow
from triptych.gpu.run.storage_table import StorageTable, Views

SOURCE = """
extern "C" __global__ void fill(float* x, int first, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[first + i] = 7;
}
extern "C" __global__ void gather(float* out, const float* x, const int* where) {
    out[threadIdx.x] = x[where[threadIdx.x]];
}
"""


@pytest.fixture(scope="module")
def kernels() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


@pytest.fixture(autouse=True, params=[1, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[None]:
    with scope(workers=request.param):
        yield


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    assert (finding.check, finding.severity, finding.space) == ("viewcheck", Severity.WARNING, "global")
    return finding


@pytest.mark.parametrize(("first", "count"), [(0, 9), (0, 32), (8, 1), (1, 8)])
def test_a_store_behind_a_slice(kernels: tt.cuda.CudaModule, first: int, count: int) -> None:
    rows = np.zeros((8, 8), np.float32)
    found = only(kernels["fill"][1, 32](rows[1], first, count).findings)
    assert found.message.startswith("writes 1 byte after the end of argument 0, x")
    assert (found.access, found.address) == ("store", tt.data_ptr(rows[2]))
    assert found.where is not None
    assert (rows.reshape(-1)[8 + first : 8 + first + count] == 7).all()
    assert rows.sum() == 7 * count


def test_a_load_before_a_slice(kernels: tt.cuda.CudaModule) -> None:
    data, out, where = np.arange(64, dtype=np.float32), np.zeros(32, np.float32), np.arange(32, dtype=np.int32)
    where[5] = -3
    found = only(kernels["gather"][1, 32](out, data[16:48], where).findings)
    assert found.message.startswith("reads 12 bytes before the start of argument 1, x")
    assert found.address == tt.data_ptr(data[13:])
    expected = data[16:48].copy()
    expected[5] = 13
    assert np.array_equal(out, expected)


def test_what_stays_inside_is_silent(kernels: tt.cuda.CudaModule) -> None:
    data = np.zeros(64, np.float32)
    assert kernels["fill"][1, 32](data[16:24], 0, 8).findings == ()
    assert kernels["fill"][1, 32](data[16:24], 7, 1).findings == ()
    assert kernels["fill"][2, 32](data, 0, 64).findings == ()


def test_two_parts_of_one_array_count_together(kernels: tt.cuda.CudaModule) -> None:
    data, where = np.arange(64, dtype=np.float32), np.full(32, -8, np.int32)
    assert kernels["gather"][1, 32](data[:32], data[48:], where).findings == ()
    assert (data[:32] == 40).all()


def test_it_can_be_left_out(kernels: tt.cuda.CudaModule) -> None:
    rows = np.zeros((4, 8), np.float32)
    with tt.profile(check="memcheck") as profile:
        kernels["fill"][1, 32](rows[1], 0, 9)
    assert profile.findings == ()


def test_code_looks_for_views_only_where_the_check_is_in_force(
    kernels: tt.cuda.CudaModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[tuple[int, int]]] = []

    def run(table: StorageTable, views: Views) -> None:
        begin(table, views)
        columns = [StorageRow.position(name) for name in ("view_low", "view_high")]
        seen.append({(int(low), int(high)) for low, high in table.rows[:, columns]} - {(0, 0)})

    begin = StorageTable.begin
    monkeypatch.setattr(StorageTable, "begin", run)
    rows = np.zeros((4, 8), np.float32)
    kernels["fill"][1, 32](rows[1], 0, 8)
    kernels["fill"][1, 32](rows, 0, 8)
    with tt.profile(check="memcheck"):
        kernels["fill"][1, 32](rows[1], 0, 8)
    assert seen == [{(tt.data_ptr(rows[1]), tt.data_ptr(rows[2]))}, set(), set()]


def test_the_end_of_the_array_is_still_a_fault(kernels: tt.cuda.CudaModule) -> None:
    rows = np.zeros((4, 8), np.float32)
    with pytest.raises(tt.MemoryFault, match=r"beyond the end|after the nearest allocation"):
        kernels["fill"][1, 64](rows[3], 0, 9)
