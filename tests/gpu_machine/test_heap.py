"""`malloc`, `free`, `new` and `delete` in kernels: bounds, life beyond a launch, and what is freed wrongly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
struct Node { Node *next; int value; };
extern "C" __global__ void lists(int *y, int n) {
    Node *list = nullptr;
    for (int k = 0; k <= threadIdx.x % n; ++k) {
        Node *node = new Node;
        node->next = list; node->value = k; list = node;
    }
    int sum = 0;
    while (list) { Node *next = list->next; sum += list->value * list->value; delete list; list = next; }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void make(int **p, int n) {
    int i = threadIdx.x;
    p[i] = (int *)malloc(n * sizeof(int));
    if (p[i]) for (int k = 0; k < n; ++k) p[i][k] = i * k;
}
extern "C" __global__ void sum(int *const *p, int *y, int n) {
    int s = 0;
    for (int k = 0; k < n; ++k) s += p[threadIdx.x][k];
    y[threadIdx.x] = s;
}
extern "C" __global__ void drop(int *const *p, long long shift) { free((char *)p[threadIdx.x] + shift); }
extern "C" __global__ void late(int *y) {
    int *p = (int *)malloc(8);
    p[0] = 5; p[1] = 6;
    y[0] = p[1];
    free(p);
    y[0] += p[1];
}
extern "C" __global__ void nothing(int *y) {
    free(nullptr);
    void *p = malloc(0), *q = malloc(0);
    y[0] = p && q && p != q;
    free(p); free(q);
}
"""


@pytest.fixture(scope="module")
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


@pytest.fixture
def made(module: tt.cuda.CudaModule) -> Iterator[np.ndarray]:
    """Pointers to 40 allocations of 10 integers."""
    pointers = np.zeros(40, np.int64)
    module["make"][1, 40](pointers, 10)
    yield pointers.copy()
    module["drop"][1, 40](pointers, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_lists_of_nodes(module: tt.cuda.CudaModule, workers: int) -> None:
    y = np.zeros(128, np.int32)
    with tt.scope(workers=workers):
        module["lists"][2, 64](y, 7)
    squares = np.cumsum(np.arange(7) ** 2)
    np.testing.assert_array_equal(y, squares[np.arange(128) % 64 % 7])


def test_allocations_outlive_a_launch(module: tt.cuda.CudaModule, made: np.ndarray) -> None:
    assert len(set(made.tolist())) == 40
    assert not (made % 16).any()
    y = np.zeros(40, np.int32)
    launch = module["sum"][1, 40](made, y, 10)
    assert y.tolist() == [45 * i for i in range(40)]
    assert launch.counters["global.load.bytes"].value == 40 * (8 + 10 * 4)


def test_each_allocation_has_bounds(module: tt.cuda.CudaModule, made: np.ndarray) -> None:
    with pytest.raises(tt.MemoryFault) as caught:
        module["sum"][1, 40](made, np.zeros(40, np.int32), 11)
    fault = caught.value
    assert (fault.access, fault.space, fault.address, fault.thread) == ("load", "global", made[0] + 40, (0, 0, 0))
    assert f"is 1 byte after the 40 bytes that malloc gave at {made[0]:#x}" in fault.message


def test_wrong_frees(module: tt.cuda.CudaModule, made: np.ndarray) -> None:
    with pytest.raises(tt.MemoryFault, match=rf"free of {made[0] + 4:#x}, where no allocation of the heap starts"):
        module["drop"][1, 1](made, 4)
    other = np.zeros(1, np.int64)
    module["make"][1, 1](other, 3)
    module["drop"][1, 1](other, 0)
    with pytest.raises(tt.MemoryFault, match=r"kernel drop: free of .* by thread \(0,0,0\) in block \(0,0,0\)"):
        module["drop"][1, 1](other, 0)
    with pytest.raises(tt.MemoryFault, match="is out of bounds"):
        module["sum"][1, 1](other, np.zeros(1, np.int32), 1)


def test_memory_that_was_freed_is_out_of_bounds(module: tt.cuda.CudaModule) -> None:
    with pytest.raises(tt.MemoryFault, match="is out of bounds") as caught:
        module["late"][1, 1](np.zeros(1, np.int32))
    assert caught.value.where is not None
    assert caught.value.where.text == "y[0] += p[1];"


def test_null_and_nothing(module: tt.cuda.CudaModule) -> None:
    y = np.zeros(1, np.int32)
    module["nothing"][1, 1](y)
    assert y[0] == 1


def test_a_heap_that_is_full_gives_null(module: tt.cuda.CudaModule) -> None:
    pointers = np.zeros(32, np.int64)
    with tt.scope(heap_bytes=64 * 20):
        module["make"][1, 32](pointers, 10)
        assert np.count_nonzero(pointers) == 20
        given = pointers[:20].copy()
        module["drop"][1, 20](given, 0)
        module["make"][1, 5](pointers, 64)  # what was given back is joined
        assert pointers[:5].all()
        module["drop"][1, 5](pointers, 0)
