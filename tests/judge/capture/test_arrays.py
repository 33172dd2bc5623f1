"""An array of a capture has all of an array but its values."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import triptych as tt
from triptych.core.dtypes import dtype_of
from triptych.core.handles import Handle
from triptych.execution.capture import CapturedArray, recording

VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x[1],
    lambda x: x[-1, 2:],
    lambda x: x[:, ::-1],
    lambda x: x[..., 1:1],
    lambda x: x[None, 1:, 0],
    lambda x: x[1:3, ::2, -4],
    lambda x: x.transpose(),
    lambda x: x.transpose(2, 0, 1),
    lambda x: x.reshape(6, 20),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(2, -1, 10, 1),
    lambda x: x[:, 1:3].reshape(3, 2, 2, 2, 2),
    lambda x: x[::2].reshape(2, 40),
    lambda x: x[:1].reshape(1, 1, 40),
    lambda x: x.view(np.int16),
    lambda x: x.view("u8")[..., 3::4] if isinstance(x, CapturedArray) else x.view(np.uint8)[..., 3::4],
    lambda x: x[1:2, 0:0].reshape(0, 7),
]


def place(array: Any, whole: Any) -> tuple[Any, ...]:  # noqa: ANN401  # of numpy or captured
    """Shape, strides and where the first element lies."""
    if isinstance(array, CapturedArray):
        return array.shape, array.strides, array.data_ptr() - whole.data_ptr(), array.dtype
    start = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return array.shape, array.strides, start, array.dtype


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_numpys(view: Callable[[Any], Any]) -> None:
    whole = np.zeros((3, 5, 8), np.float32)
    with recording() as made:
        x = made.new_input("x", dtype_of("f32"), whole.shape)
        found, expected = view(x), view(whole)
        shape, strides, start, dtype = place(found, x)
        same_place = expected.size == 0 or start == place(expected, whole)[2]
        assert (shape, dtype, same_place) == (expected.shape, expected.dtype, True)
        if expected.size:
            pairs = zip(strides, expected.strides, expected.shape, strict=True)
            assert all(one == other for one, other, extent in pairs if extent > 1)
    assert made.nodes == []


NO_VIEWS: list[tuple[Callable[[Any], Any], type[Exception]]] = [
    (lambda x: x[3], IndexError),
    (lambda x: x[0, 0, 0, 0], IndexError),
    (lambda x: x[[0, 1]], tt.UsageError),
    (lambda x: x[True], tt.UsageError),
    (lambda x: x.reshape(7, -1), tt.UsageError),
    (lambda x: x.transpose().reshape(-1), tt.UsageError),
    (lambda x: x[:, :, 1:].reshape(-1), tt.UsageError),
    (lambda x: x.transpose(0, 0, 1), tt.UsageError),
    (lambda x: x.transpose().view("u8"), tt.UsageError),
]


@pytest.mark.parametrize(("view", "error"), NO_VIEWS)
def test_what_is_no_view(view: Callable[[Any], Any], error: type[Exception]) -> None:
    with recording() as made, pytest.raises(error):
        view(made.new_input("x", dtype_of("f32"), (3, 5, 8)))


def test_what_may_be_asked_for() -> None:
    with recording() as made:
        x = made.new_input("x", dtype_of("bf16"), (3, 5))
        y = tt.empty(7, "s64")
        assert isinstance(x, tt.Array)
        assert isinstance(y, tt.Array)
        assert (x.shape, x.dtype, x.strides, x.size, x.ndim, x.nbytes) == (
            (3, 5),
            ml_dtypes.bfloat16,
            (10, 2),
            15,
            2,
            30,
        )
        assert (x.stride(), x.stride(0), x.numel(), x.element_size(), len(x)) == ((5, 1), 5, 15, 2, 3)
        assert [row.shape for row in x] == [(5,)] * 3
        assert (x.is_contiguous(), x.transpose().is_contiguous()) == (True, False)
        assert x.data_ptr() % 256 == 0
        assert y.data_ptr() >= x.data_ptr() + x.nbytes + 4096
        assert x != None  # noqa: E711  what careless code asks
        assert "bf16[3, 5]" in repr(x)
        assert len({x, y}) == 2


TOUCHES: list[Callable[[Any], Any]] = [
    bool, float, int, complex, np.asarray, list, lambda x: x.item(), lambda x: x.numpy(), lambda x: x.tolist(),
    lambda x: x + 1, lambda x: 1 - x, lambda x: x * x, lambda x: x @ x, lambda x: -x, abs, lambda x: x == 0,
    lambda x: x < 1, lambda x: 1 in x, lambda x: [0][x], lambda x: np.float32(1) * x, lambda x: np.exp(x), round,
]  # fmt: skip


@pytest.mark.parametrize("touch", TOUCHES)
def test_values_cannot_be_had(touch: Callable[[Any], Any]) -> None:
    with recording() as made:
        x = made.new_input("x", dtype_of("f32"), (4,))
        with pytest.raises(tt.ValueTouched, match=r"'x' \(f32\[4\]\).*no values") as caught:
            touch(x)
    where = caught.value.where
    assert where is not None
    assert Path(where.file).name == "test_arrays.py"


def test_methods_of_other_arrays_are_missing_by_name() -> None:
    with recording() as made, pytest.raises(AttributeError, match="no 'sum': while a program is captured"):
        made.new_input("x", dtype_of("f32"), (4,)).sum()  # pyright: ignore[reportAttributeAccessIssue]


def test_after_the_capture() -> None:
    with recording() as made:
        x = made.new_input("x", dtype_of("f32"), (4,))
    assert isinstance(x.handle, Handle)
    with pytest.raises(tt.CaptureError, match=r"'x'.*has ended"):
        x.fill_(1)
    assert isinstance(tt.empty(3), tt.Array)
    assert not isinstance(tt.empty(3), CapturedArray)
