"""The order of blocks, what undefined memory holds, and the budget of a whole launch: settings of a launch on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.dtypes import DTYPES
from triptych.core.handles import AddressSpace, Handle
from triptych.core.plan import Allocate, Plan

SOURCE = """
#include <cstdio>
__device__ unsigned arrived;

extern "C" __global__ void arrivals(int* out, unsigned* count) {      // blocks in the order in which they ran
    if (threadIdx.x == 0) out[atomicAdd(count, 1u)] = blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) ranks(int* out, unsigned* count) {
    unsigned rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) out[atomicAdd(count, 1u)] = 10 * blockIdx.x + rank;
}
extern "C" __global__ void say() { printf("block %d\\n", blockIdx.x); }
extern "C" __global__ void beyond(int* x) { if (blockIdx.x % 3 == 1) x[1 << 20] = 1; else x[blockIdx.x] = 1; }
extern "C" __global__ void meet(int* seen) {                          // all wait for all
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1u);
        while (*(volatile unsigned*)&arrived % gridDim.x != 0u) {}
        seen[blockIdx.x] = 1;
    }
}
extern "C" __global__ void after_the_one_before(int* flags) {         // each waits for the block before it
    if (threadIdx.x == 0) {
        if (blockIdx.x) while (((volatile int*)flags)[blockIdx.x - 1] == 0) {}
        flags[blockIdx.x] = 1;
    }
}
extern "C" __global__ void undefined(unsigned* out, int where) {
    __shared__ unsigned fixed[32]; extern __shared__ unsigned dynamic[];
    unsigned own[8];
    if (where == 9) { own[threadIdx.x & 7] = 0; fixed[threadIdx.x] = dynamic[threadIdx.x] = 0; }
    unsigned* heap = (unsigned*)malloc(128 * 4);
    unsigned* at = out + (blockIdx.x * 32 + threadIdx.x) * 4;
    at[0] = fixed[threadIdx.x]; at[1] = dynamic[threadIdx.x]; at[2] = own[(threadIdx.x + where) & 7];
    at[3] = heap[threadIdx.x];
    fixed[threadIdx.x] = dynamic[threadIdx.x] = heap[threadIdx.x] = 7; own[(threadIdx.x + where) & 7] = 7;
    if (own[where & 7] == 1) at[0] = 1;
    free(heap);
}
extern "C" __global__ void turns(int* x, int n) {
    #pragma unroll 1
    for (int i = 0; i < n; i++) atomicAdd(x, i);
}
extern "C" __global__ void straight(int* x) { x[blockIdx.x] = 1; }
"""
MODULE = tt.cuda.compile(SOURCE, arch="sm_90")


def arrivals(order: str, grid: tuple[int, ...]) -> list[int]:
    """The blocks in the order in which they ran, a number each."""
    blocks = int(np.prod(grid))
    out, count = np.zeros(blocks, np.int32), np.zeros(1, np.uint32)
    with tt.scope(block_order=order):
        MODULE["arrivals"][grid, 32](out, count)
    return out.tolist()


def test_blocks_run_in_the_order_of_the_setting() -> None:
    ascending = [x + 100 * y + 10000 * z for z in range(2) for y in range(3) for x in range(4)]
    assert arrivals("ascending", (4, 3, 2)) == ascending
    assert arrivals("descending", (4, 3, 2)) == ascending[::-1]
    assert arrivals("descending", (1,)) == [0]


def test_clusters_run_in_that_order_and_their_blocks_keep_their_ranks() -> None:
    found: list[list[int]] = []
    for order in ("ascending", "descending"):
        out, count = np.zeros(6, np.int32), np.zeros(1, np.uint32)
        with tt.scope(block_order=order):
            MODULE["ranks"][6, 32](out, count)
        found.append(out.tolist())
    assert found == [[0, 11, 20, 31, 40, 51], [40, 51, 20, 31, 0, 11]]


def test_what_is_printed_and_the_first_fault_follow_the_order(capfd: pytest.CaptureFixture[str]) -> None:
    with tt.scope(block_order="descending"):
        MODULE["say"][3, 1]()
    assert capfd.readouterr().out == "block 2\nblock 1\nblock 0\n"
    for order, block, stored in (("ascending", 1, [0]), ("descending", 7, [8])):
        x = np.zeros(9, np.int32)
        with tt.scope(block_order=order), pytest.raises(tt.MemoryFault) as caught:
            MODULE["beyond"][9, 1](x)
        assert caught.value.block == (block, 0, 0)
        assert np.flatnonzero(x).tolist() == stored  # blocks before it have run, and no other


def counted(order: str, launch: Callable[[], tt.LaunchReport]) -> dict[str, float]:
    with tt.scope(block_order=order):
        return {name: counter.value for name, counter in launch().counters.items()}


def test_counters_are_the_same_in_both_orders() -> None:
    blocks = 40
    arrays: list[NDArray[np.int32]] = [np.zeros(blocks, np.int32) for _ in range(2)]
    launches: dict[str, Callable[[], tt.LaunchReport]] = {
        "meet": lambda: MODULE["meet"][blocks, 64](arrays[0]),
        "cooperative": lambda: MODULE["meet"].configure(grid=blocks, block=64, cooperative=True)(arrays[0]),
        "ranks": lambda: MODULE["ranks"][blocks, 64](arrays[0], np.zeros(1, np.uint32)),
        "straight": lambda: MODULE["straight"][blocks, 32](arrays[1]),
    }
    for name, launch in launches.items():
        assert counted("ascending", launch) == counted("descending", launch), name
    assert arrays[1].all()


def test_blocks_may_wait_for_those_that_begin_behind_them() -> None:
    flags = np.zeros(300, np.int32)
    with tt.scope(block_order="descending"):
        MODULE["after_the_one_before"][300, 32](flags)
    assert flags.all()


@pytest.mark.parametrize("byte", [None, 0, 0x7F, 0xFF])
def test_what_undefined_memory_of_a_block_holds(byte: int | None) -> None:
    out = np.zeros((5, 32, 4), np.uint32)
    with tt.scope(undefined_byte=byte, workers=1):
        MODULE["undefined"][5, 32, 128](out, 3)
        held = tt.empty(3, "u32").numpy().tolist()
    word = (0xA5 if byte is None else byte) * 0x01010101
    assert (out == word).all()  # in every block, whatever the one before has left
    assert held == [(0xFF if byte is None else byte) * 0x01010101] * 3


def test_what_a_plan_allocates_holds_the_byte() -> None:
    storage = AddressSpace().place("made", 12, writable=True)
    handle = Handle(storage, DTYPES["u32"], (3,), (1,))
    plan = Plan((Allocate(storage),), outputs=(handle,))
    with tt.scope(undefined_byte=0x40):
        (made,) = tt.plans.run_plan(plan, {}).outputs
    assert made.tolist() == [0x40404040] * 3


def test_the_budget_of_a_launch_is_that_of_all_its_warps() -> None:
    x = np.zeros(1, np.int32)
    warps, loops = 10, 1000  # a loop of n rounds goes back n - 1 times
    with tt.scope(launch_budget=warps * loops):
        MODULE["turns"][warps, 32](x, loops)
    messages: set[str] = set()
    for _ in range(2):
        with tt.profile() as profile, tt.scope(launch_budget=warps * loops - 1), pytest.raises(
            tt.BudgetExceeded, match=r"ran more than 9999 loop iterations together.* stopped in block \(9,0,0\)"
        ) as caught:  # fmt: skip
            MODULE["turns"][warps, 32](x, loops)
        assert [finding.check for finding in profile.findings] == ["budget"]
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_one_long_loop_is_stopped_where_it_is_and_a_large_grid_too() -> None:
    x = np.zeros(1 << 12, np.int32)
    with tt.scope(launch_budget=100_000), pytest.raises(tt.BudgetExceeded) as caught:
        MODULE["turns"][1, 32](x, 1 << 20)
    assert caught.value.where is not None
    with tt.scope(launch_budget=1 << 12):
        MODULE["straight"][1 << 12, 32](x)
    with tt.scope(launch_budget=(1 << 12) - 1), pytest.raises(tt.BudgetExceeded, match=r"in block \(4095,0,0\)"):
        MODULE["straight"][1 << 12, 32](x)


def test_settings_that_are_none() -> None:
    wrong: dict[str, object] = {"undefined_byte": 256, "block_order": "random", "launch_budget": 0}
    expected = ("undefined_byte=256: .* 0 to 255", "expected ascending or descending", "of 1 or more")
    for (name, value), message in zip(wrong.items(), expected, strict=True):
        with pytest.raises(tt.SettingError, match=message), tt.scope(**{name: value}):
            pass
