"""When lanes that wait in a loop let those at higher blocks go first: after so many iterations, parted or together."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

import triptych as tt

PATIENCE = 64
"""Iterations of loops that wait."""

TAIL = """mov.u32 %r4, 0;
LEAVE: add.u32 %r4, %r4, 1; ld.volatile.global.u32 %r5, [%d0]; add.u32 %r5, %r5, %r6; setp.lt.u32 %p0, %r4, %r5;
@%p0 bra LEAVE;
activemask.b32 %r5; st.global.u32 [%d1], %r5;
ret;
}
"""
"""Lane l leaves the loop in iteration %r6, and writes who runs with it behind."""


def run_ahead(body: str, block: int = 32) -> list[int]:
    """The lanes that run together behind the loop, as each lane sees it; the word at %d0 is 0."""
    start = """.entry wait(.param .u64 word, .param .u64 out)
{
.reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 %d<3>;
ld.param.u64 %d0, [word]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %d1, %r0, 4, %d1;
"""
    given = np.zeros(1, np.uint32), np.zeros(block, np.uint32)
    return run_both(HEADER + start + body + TAIL, "wait", 1, block, *given).arrays[1].tolist()


def ahead(first: int) -> list[int]:
    """Lane l leaves in iteration `first` + l: those that have left when patience ends run, then the rest."""
    left = PATIENCE + 1 - first + 1
    early = (1 << left) - 1
    return [early] * left + [0xFFFF_FFFF ^ early] * (32 - left)


@pytest.mark.parametrize("first", [40, 50, 64])
def test_an_iteration_in_which_lanes_part_counts(first: int) -> None:
    assert run_ahead(f"add.u32 %r6, %r0, {first};") == ahead(first)


def test_together_they_lose_it_in_the_iteration_in_which_they_part() -> None:
    """65 iterations together, in the last of which the first lane leaves: it goes on at once."""
    assert run_ahead(f"add.u32 %r6, %r0, {PATIENCE + 1};") == ahead(PATIENCE + 1)


@pytest.mark.parametrize("parted", [False, True])
def test_a_choice_that_leaves_the_loop_costs_nothing(parted: bool) -> None:
    """A loop whose last block picks the way out for all lanes that run, ten times before the one that is looked at."""
    part = "and.b32 %r8, %r0, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra JOIN;" if parted else "mov.u32 %r9, 0;"
    body = f"""add.u32 %r6, %r0, 40; mov.u32 %r7, 0;
AGAIN: {part}
ROUND: ld.volatile.global.u32 %r8, [%d0]; add.u32 %r8, %r8, 1;
ways: .branchtargets ROUND, OUT, OTHER;
brx.idx %r8, ways;
OTHER: add.u32 %r9, %r0, 100;
OUT: add.u32 %r9, %r9, 1;
JOIN: add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 10;
@%p2 bra AGAIN;
"""
    assert run_ahead(body) == ahead(40)


RECURSION = r"""
typedef int (*Function)(volatile int*, int, int);
__device__ __noinline__ int end(volatile int* word, int depth, int turn) { return depth + threadIdx.x; }
__device__ int again(volatile int* word, int depth, int turn);
__device__ Function table[2] = {again, end};
__device__ __noinline__ int again(volatile int* word, int depth, int turn) {
    return *word ? 0 : table[depth == turn ? threadIdx.x & 1 : depth == 0](word, depth - 1, turn) + 100;
}
extern "C" __global__ void recursion(volatile int* word, int* out, int turn) {
    out[threadIdx.x] = table[0](word, 70, turn);
}
"""


@pytest.mark.parametrize("turn", [5, 6, 7])
def test_lanes_that_part_to_lower_blocks_only_do_not_stand_still(turn: int) -> None:
    """Functions have lower numbers than who calls them: where patience ends, nobody is at a higher block."""
    text = tt.cuda.compile(RECURSION, arch="sm_80").ptx
    given = np.zeros(1, np.int32), np.zeros(32, np.int32), np.int32(turn)
    lanes = np.arange(32)
    ended = np.where(lanes % 2, turn, 0)  # the depth from which each lane called `end`
    expected = 100 * (70 - ended + 1) + ended - 1 + lanes
    assert np.array_equal(run_both(text, "recursion", 1, 32, *given).arrays[1], expected)
