"""A launch that is made again is recognised, and one that only looks like it is not."""

# Triton's language has no types: kernels are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from triptych.core.errors import KernelFault
from triptych.execution.profile import profile

jit: Any = triton.jit


@jit
def add_number(x, out, number, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets) + number)


def test_the_same_launch_is_one_object(recorder: Any) -> None:
    x, out = torch.zeros(64), torch.zeros(64)
    for _ in range(3):
        add_number[(1,)](x, out, 2.5, BLOCK=32)
    first, *others = recorder.launches
    assert all(one is first for one in others)


@pytest.mark.parametrize(
    "changed",
    [
        lambda x, out: ((1,), x, out, 3.5),
        lambda x, out: ((2,), x, out, 2.5),
        lambda x, out: ((1,), out, x, 2.5),
        lambda x, out: ((1,), x[16:], out, 2.5),
        lambda x, out: ((1,), x, out.clone(), 2.5),
    ],
)
def test_another_argument_or_grid_is_another_launch(recorder: Any, changed: Any) -> None:
    x, out = torch.zeros(64), torch.zeros(64)
    add_number[(1,)](x, out, 2.5, BLOCK=32)
    grid, *arguments = changed(x, out)
    add_number[grid](*arguments, BLOCK=32)
    first, second = recorder.launches
    assert (first.grid, first.arguments) != (second.grid, second.arguments)


def test_zeros_of_both_signs_are_told_apart(active: None) -> None:
    x, out = torch.full((32,), -0.0), torch.zeros(32)
    signs: list[float] = []
    for number in (0.0, -0.0, 0.0):
        add_number[(1,)](x, out, number, BLOCK=32)
        signs.append(math.copysign(1, float(out[0])))
    assert signs == [1, -1, 1]


def test_a_numpy_array_is_the_same_from_launch_to_launch(active: None) -> None:
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    for number in (1.0, 2.0):
        add_number[(1,)](x, out, number, BLOCK=32)
        np.testing.assert_array_equal(out, np.arange(32) + number)


def test_memory_that_a_tensor_has_left_is_no_longer_reached(active: None) -> None:
    x, out = torch.ones(64), torch.zeros(64)
    add_number[(2,)](x, out, 1.0, BLOCK=32)
    x.resize_(32)
    x.untyped_storage().resize_(128)
    with pytest.raises(KernelFault, match="out of bounds"):
        add_number[(2,)](x, out, 1.0, BLOCK=32)
    x.resize_(4096).fill_(3)
    add_number[(2,)](x, out, 1.0, BLOCK=32)
    assert out.tolist() == [4.0] * 64


def test_an_array_that_is_read_only_by_now_is_not_written(active: None) -> None:
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    add_number[(1,)](x, out, 1.0, BLOCK=32)
    out.setflags(write=False)
    with pytest.raises(KernelFault, match="read-only"):
        add_number[(1,)](x, out, 1.0, BLOCK=32)
    out.setflags(write=True)
    add_number[(1,)](x, out, 2.0, BLOCK=32)
    assert (out == 3).all()


def test_what_is_said_of_an_array_with_gaps_is_said_of_each_launch(active: None) -> None:
    x, out = torch.ones(64), torch.zeros(64)
    with profile() as seen:
        for _ in range(2):
            add_number[(1,)](x[::2], out, 1.0, BLOCK=32)
    assert len(seen.launches) == 2
    assert all("with gaps" in remark for launch in seen.launches for remark in launch.remarks)
    assert all(launch.remarks for launch in seen.launches)
