"""What Triton compiles and the machine does not have: an error that names the instruction and the author's line."""

# Triton's language has no types.
# ruff: noqa: ANN001, ANN201
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportArgumentType=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.errors import UnsupportedInstruction
from triptych.languages.triton import activate


@triton.jit
def product(a, b, c, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = row * N + column
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_tensor_cores_of_a_later_generation_are_told_as_such() -> None:
    n = 128
    a, c = np.zeros((n, n), np.float16), np.zeros((n, n), np.float32)
    with activate(chip="h100", target="sm_100"), pytest.raises(UnsupportedInstruction) as caught:
        product[(1,)](a, a, c, n)
    error = caught.value
    assert "PTX instruction 'tcgen05." in error.message
    assert error.where is not None
    assert error.where.file == __file__
    assert error.hint is not None
    assert "sm_90 or lower" in error.hint
