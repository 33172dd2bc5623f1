"""Case: Triton's vector addition of 3000 elements in blocks of 1024: the mask, and nothing past the end."""

# Triton's language has no types: kernels are `Any` here.
# ruff: noqa: ANN001, ANN201
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl
from case_helpers import line_of, random, refused, value

import triptych as tt

jit: Any = triton.jit
N, BLOCK_SIZE = 3000, 1024
LANES_INSIDE = N - 2 * BLOCK_SIZE


@jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def test_three_programs_with_952_lanes_in_bounds(triton_sm80: tt.Profile) -> None:
    x, y, out = random(N), random(N, seed=1), np.full(N, np.nan, np.float32)
    for programs in (triton.cdiv(N, BLOCK_SIZE), 2):
        add_kernel[(programs,)](x, y, out, N, BLOCK_SIZE=BLOCK_SIZE)
    assert np.array_equal(out, x + y)
    three, two = triton_sm80.launches
    assert (three.grid, three.target) == ((3, 1, 1), "sm_80")
    assert LANES_INSIDE == 952
    for name, arrays in (("global.load.bytes", 2), ("global.store.bytes", 1)):
        assert value(three, name) == 4 * N * arrays
        assert value(three, name) - value(two, name) == 4 * LANES_INSIDE * arrays, "72 of 1024 lanes are masked"
    assert value(three, "flops.f32") == 3 * BLOCK_SIZE, "the mask guards the accesses, not the addition"


def test_nothing_past_the_end_is_read_or_written(triton_sm80: tt.Profile) -> None:
    buffers = [np.full(N + 2 * BLOCK_SIZE, np.nan, np.float32) for _ in range(3)]
    x, y, out = (buffer[256 : 256 + N] for buffer in buffers)
    x[:], y[:] = random(N), random(N, seed=1)
    before = buffers[2].copy()
    add_kernel[(3,)](x, y, out, N, BLOCK_SIZE=BLOCK_SIZE)
    before[256 : 256 + N] = x + y
    assert before.tobytes() == buffers[2].tobytes(), "all the poison is there, to the bit"
    assert not np.isnan(out).any()
    (launch,) = triton_sm80.launches
    touched = 64 * -(-4 * N // 64)
    assert value(launch, "global.load.compulsory_bytes") == 2 * touched
    assert value(launch, "global.store.compulsory_bytes") == touched
    assert launch.findings == ()


def test_without_the_mask_it_is_a_fault_at_the_author_s_line(triton_sm80: tt.Profile) -> None:
    x, out = random(N), np.zeros(N, np.float32)
    with refused(tt.MemoryFault, "__global__ read of size", "by thread", "in block (2,0,0)") as caught:
        add_kernel[(3,)](x, x, out, 3 * BLOCK_SIZE, BLOCK_SIZE=BLOCK_SIZE)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert line_of(caught.value) == "x = tl.load(x_ptr + offsets, mask=mask)"
    (stopped,) = triton_sm80.launches
    assert [finding.check for finding in stopped.findings] == ["memcheck"]
    assert not stopped.counters
