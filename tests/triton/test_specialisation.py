"""Alignment is decided by the device address, never by where the host put an array."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

jit: Any = triton.jit


@jit
def double(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) * 2)


def vectorised(program: Any) -> bool:
    return "ld.global.v" in program.text


def test_an_owner_is_aligned_wherever_the_host_put_it(recorder: Any) -> None:
    double[(1,)](np.zeros(1024, np.float32), BLOCK=1024)
    assert vectorised(recorder.programs[0])


def test_a_view_of_an_odd_offset_is_not_aligned(recorder: Any) -> None:
    double[(1,)](np.zeros(1028, np.float32)[1:1025], BLOCK=1024)
    double[(1,)](np.zeros(1028, np.float32)[4:1028], BLOCK=1024)
    assert [vectorised(program) for program in recorder.programs] == [False, True]
