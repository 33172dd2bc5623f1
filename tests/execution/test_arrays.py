from __future__ import annotations

import numpy as np
import pytest
import torch

import triptych as tt
from triptych.core.errors import UnknownName, UsageError


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "s32", "u8", "f8e4m3fn", np.float64, "int16"])
def test_empty_shows_what_was_never_stored(dtype: object) -> None:
    array = tt.empty((3, 4), dtype)
    values = array.numpy().astype(np.float64)
    assert np.isnan(values).all() or (values == -1).all() or (values == 255).all()
    assert tt.zeros((3, 4), dtype).numpy().astype(np.float64).tolist() == np.zeros((3, 4)).tolist()


def test_layout() -> None:
    array = tt.empty((3, 4), "f16")
    assert (array.shape, array.strides, array.size, array.ndim, array.nbytes) == ((3, 4), (8, 2), 12, 2, 24)
    assert array.dtype == np.float16
    assert (array.stride(0), array.stride(1)) == (4, 1)
    assert len(array) == 3
    assert tt.empty(5).shape == (5,)
    assert tt.empty(()).shape == ()


def test_element_types_by_torchs_names() -> None:
    kinds = [torch.float32, torch.bfloat16, torch.int64, torch.float8_e4m3fn]
    assert [tt.empty(1, kind).handle.dtype.name for kind in kinds] == ["f32", "bf16", "s64", "f8e4m3fn"]
    with pytest.raises(UnknownName, match=r"torch\.complex64"):
        tt.empty(1, torch.complex64)


def test_slices_are_views_at_their_own_addresses() -> None:
    array = tt.zeros((4, 6), "s32")
    assert array[1].data_ptr() == array.data_ptr() + 24
    assert array[2, 3].data_ptr() == array.data_ptr() + 60
    assert array[2, 3].shape == ()
    assert array[:, 1:3].strides == (24, 4)
    assert array[..., ::2].shape == array[:, ..., ::2].shape == (4, 3)
    array[1:3, 0] = 7
    assert array.numpy()[:, 0].tolist() == [0, 7, 7, 0]
    assert [row.data_ptr() for row in array] == [array.data_ptr() + 24 * row for row in range(4)]
    assert array.reshape(2, 12)[1].handle.storage == array.handle.storage
    assert array.transpose().shape == (6, 4)


def test_indexing_that_would_copy_is_an_error() -> None:
    array = tt.zeros((4, 6))
    with pytest.raises(UsageError, match="copies the elements"):
        array[[0, 2]]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no view of shape"):
        array.transpose().reshape(24)


def test_numpy_sees_the_same_memory() -> None:
    array = tt.zeros(4)
    view = np.asarray(array)
    view[2] = 5
    assert array[2].item() == 5
    assert np.shares_memory(view, array.numpy())
    assert np.asarray(array, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(array), array.numpy())


def test_in_place_operations_and_clone() -> None:
    array = tt.empty(4, "s32").fill_(3)
    copy = array.clone()
    array.zero_()
    assert (array.numpy().tolist(), copy.numpy().tolist()) == ([0] * 4, [3] * 4)
    assert copy.data_ptr() != array.data_ptr()
    assert array.copy_(copy).numpy().tolist() == [3] * 4
    with pytest.raises(TypeError):
        array.copy_(np.array([0.5] * 4))
    assert "shape=(4,)" in repr(array)


def test_unknown_dtype() -> None:
    with pytest.raises(UnknownName, match="unknown dtype"):
        tt.empty(3, "f33")


def test_data_ptr_of_any_array_is_the_address_that_kernels_see() -> None:
    owner = np.zeros(10, np.float32)
    assert tt.data_ptr(owner[3:]) == tt.data_ptr(owner) + 12
