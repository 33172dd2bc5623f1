"""Lanes that part: nests, loops of different lengths, switches, early returns, calls that were inlined, barriers."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, Outcome, run_both

import triptych as tt

SOURCE = r"""
extern "C" __global__ void nest(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i], r = 0;
    if (v & 1) {
        if (v & 2) { r = v * 3; if (v & 4) r -= 7; else r += y[i]; }
        else r = v / 3;
    } else if (v & 8) {
        r = v % 7;
        if (r == 3) return;
        r *= r;
    }
    y[i] = r + v;
}
extern "C" __global__ void loops(const int* trips, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
    for (int k = 0; k < trips[i]; ++k) {
        if (k % 5 == 3) continue;
        for (int j = k; j < trips[i ^ 1] && j < k + 4; ++j) {
            total += j * 0.5f;
            if (total > 300.0f) goto done;
        }
        int left = k;
        do { total -= 0.25f; left -= 3; } while (left > 0);
    }
done:
    y[i] = total;
}
extern "C" __global__ void collatz(const unsigned* x, unsigned* steps, unsigned* peak) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = x[i], n = 0, most = v;
    while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; ++n; if (v > most) most = v; }
    steps[i] = n; peak[i] = most;
}
extern "C" __global__ void early(const int* x, int* y) {
    int i = threadIdx.x;
    if (x[i] < 0) return;
    if (x[i] < 10) { y[i] = 1; if (x[i] & 1) return; y[i] = 2; }
    for (int k = 0; k < x[i]; ++k) { if (k == 13) return; y[i] += k; }
    y[i] = -y[i];
}
extern "C" __global__ void barriers(const int* x, int* y, int rounds) {
    __shared__ int values[96];
    int i = threadIdx.x;
    values[i] = x[i];
    for (int k = 0; k < rounds; ++k) {
        __syncthreads();
        int other = values[(i + 1 + k) % blockDim.x];
        __syncthreads();
        if (other & 1) values[i] += other; else if (other > 100) values[i] -= other / 2;
    }
    y[i] = values[i];
}
extern "C" __global__ void shape(int* y) {
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    int below; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    int v = threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z;
    if (threadIdx.y & 1) v += blockIdx.x; else if (threadIdx.x > 2) v -= blockIdx.y;
    y[b * blockDim.x * blockDim.y * blockDim.z + t] = v * 64 + lane + (below & 1);
}
extern "C" __global__ void warps(const int* x, int* y) {
    int i = threadIdx.x, v = x[i];
    unsigned all = __activemask();
    int sum = v;
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(all, sum, step);
    int up = __shfl_up_sync(all, v, 3, 8), down = __shfl_down_sync(all, v, 2, 16), pick = __shfl_sync(all, v, v & 31);
    unsigned odd = __ballot_sync(all, v & 1);
    int any = __any_sync(all, v > 90), every = __all_sync(all, v >= 0);
    y[i] = sum ^ up ^ down * 3 ^ pick * 5 ^ odd ^ any << 3 ^ every << 4;
    if (v & 1) { unsigned here = __activemask(); y[i] += __popc(here) + __shfl_sync(here, v, __ffs(here) - 1); }
}
"""


@pytest.fixture(scope="module")
def text() -> str:
    return tt.cuda.compile(SOURCE, arch="sm_80").ptx


def integers(seed: int, count: int, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.random.default_rng(seed).integers(low, high, count, np.int32)


def is_divergent(outcome: Outcome) -> bool:
    return outcome.counters["branches.divergent"] > 0


@pytest.mark.parametrize("n", [1, 31, 100, 128])
def test_nested_branches(text: str, n: int) -> None:
    x, y = integers(0, 128, 0, 64), integers(1, 128, 0, 9)
    assert is_divergent(run_both(text, "nest", 2, 64, x, y, np.int32(n))) or n == 128 or n == 1


@pytest.mark.parametrize("block", [32, 48, 7, 1])
def test_loops_whose_lanes_run_differently_often(text: str, block: int) -> None:
    trips = integers(2, 2 * block + 2, 0, 25)
    outcome = run_both(text, "loops", 2, block, trips, np.zeros(len(trips), np.float32))
    assert is_divergent(outcome) or block == 1


def test_a_loop_until_a_value_is_reached(text: str) -> None:
    x = np.arange(1, 65, dtype=np.uint32)
    outcome = run_both(text, "collatz", 2, 32, x, np.zeros_like(x), np.zeros_like(x))
    assert outcome.arrays[1][26] == 111
    assert outcome.arrays[2][26] == 9232


@pytest.mark.parametrize("block", [33, 64, 20])
def test_early_returns(text: str, block: int) -> None:
    assert is_divergent(run_both(text, "early", 1, block, integers(3, block, -8, 40), np.ones(block, np.int32)))


@pytest.mark.parametrize("block", [96, 50, 3])
def test_barriers_between_divergent_parts(text: str, block: int) -> None:
    outcome = run_both(text, "barriers", 2, block, integers(4, block, 0, 300), np.zeros(block, np.int32), np.int32(5))
    assert outcome.counters["barriers"] == 2 * 10 * -(-block // 32)


@pytest.mark.parametrize("block", [(5, 3, 2), (7, 9), (33, 2), (32, 3), (64, 2, 2), (1, 40)])
def test_blocks_and_grids_of_three_axes(text: str, block: tuple[int, ...]) -> None:
    grid = (2, 3, 2)
    count = int(np.prod(grid) * np.prod(block))
    run_both(text, "shape", grid, block, np.zeros(count, np.int32))


@pytest.mark.parametrize("block", [32, 64])
def test_operations_among_the_lanes_of_a_warp(text: str, block: int) -> None:
    run_both(text, "warps", 1, block, integers(5, block, 0, 100), np.zeros(block, np.int32))


NEXT = """.func own(.param .u32 n)
{{ .reg .b32 %x; .reg .pred %q; ld.param.u32 %x, [n]; setp.gt.u32 %q, %x, 9; @%q bra END; END: ret; }}
.visible .entry k(.param .u64 out)
{{ .reg .pred %p, %q, %o; .reg .b32 %t, %v; .reg .b64 %y;
mov.u32 %t, %tid.x; ld.param.u64 %y, [out]; mad.wide.u32 %y, %t, 4, %y; mov.u32 %v, %t;
setp.lt.u32 %p, %t, 16; setp.lt.u32 %q, %t, 8; setp.gt.u32 %o, %t, 99; {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "instructions", "divergent"),
    [
        ("@%p bra SHORT; SHORT: add.u32 %v, %v, 1; bra BEHIND; BEHIND: st.global.u32 [%y], %v; ret;", 12, 0),
        ("st.global.u32 [%y], %v; @%p bra END; END: ret;", 10, 0),
        ("st.global.u32 [%y], %v; @%p bra END; END: @%q bra LAST; LAST: ret;", 11, 0),
        ("{ .param .u32 n; st.param.u32 [n], %t; call own, (n); } st.global.u32 [%y], %v; ret;", 15, 0),
        (
            "@!%p bra MEET; @%q bra SHORT; SHORT: activemask.b32 %v; @%o bra MEET; bra MEET;"
            " MEET: st.global.u32 [%y], %v; ret;",
            14,
            1,
        ),
    ],
    ids=["short", "end", "two", "call", "parted"],
)
def test_a_branch_to_the_block_right_behind_parts_no_lanes(body: str, instructions: int, divergent: int) -> None:
    counters = run_both(HEADER + NEXT.format(body=body), "k", 1, 32, np.zeros(32, np.uint32)).counters
    assert counters["instructions.warp"] == instructions
    assert counters.get("branches.divergent", 0) == divergent
