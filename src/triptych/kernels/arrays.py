"""What the kernels' host sides share: an array's handle, checked, and an output of the kind that the inputs are."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any, TypeAlias, cast

import numpy as np

from triptych.core.dtypes import dtype_of
from triptych.core.errors import ArgumentError
from triptych.core.handles import Handle
from triptych.execution.arrays import empty
from triptych.execution.memory import memory
from triptych.execution.torch_tensors import is_tensor

AnyArray: TypeAlias = Any
"""An array of numpy, a torch tensor in the host's memory or a `tt.Array`; a function returns what it was given."""
_PACK_BYTES = 16
"""What one thread loads or stores with one instruction, at most."""
_TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
"""torch's names of the element types that outputs have."""


def checked(kernel: str, name: str, array: AnyArray, axes: str | None, dtypes: Collection[str]) -> Handle:
    """The handle of a dense array with the axes and of one of the element types that a kernel takes.

    Args:
        kernel: the function's name, for messages.
        name: the argument's.
        array: of numpy, torch (in the host's memory) or triptych.
        axes: their names with spaces between, as `batch heads n d`; none may be empty. Any, where None.
        dtypes: names of element types, as `f16`.

    Raises:
        ArgumentError: naming the argument, what it is and what was expected.
    """
    handle = memory().bind(array)
    expected = f"{kernel}: {name} is {handle.dtype.name}[{', '.join(map(str, handle.shape))}]; expected"
    if handle.dtype.name not in dtypes:
        raise ArgumentError(f"{expected} {' or '.join(sorted(dtypes))}", hint="convert it: array.astype(…)")
    if axes is not None and handle.ndim != len(axes.split()):
        raise ArgumentError(f"{expected} the axes ({', '.join(axes.split())})")
    if 0 in handle.shape:
        raise ArgumentError(f"{expected} at least one element along each axis")
    if not handle.contiguous:
        raise ArgumentError(f"{expected} rows one behind the other", hint="pass numpy.ascontiguousarray(…)")
    return handle


def multiple(kernel: str, sizes: dict[str, int], of: int, why: str) -> None:
    """Refuses sizes that are no multiples.

    Raises:
        ArgumentError: naming the size.
    """
    for name, size in sizes.items():
        if size % of:
            raise ArgumentError(f"{kernel}: {name} is {size}; expected a multiple of {of}: {why}")


def output(like: AnyArray, shape: tuple[int, ...], dtype: str) -> AnyArray:
    """A new array, undefined, of numpy, torch or triptych as `like` is one."""
    if is_tensor(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, _TORCH_NAMES[dtype]), device=like.device)
    return np.empty(shape, dtype_of(dtype).numpy) if isinstance(like, np.ndarray) else empty(shape, dtype)


def lower_halves(array: AnyArray) -> AnyArray:
    """The lower 32 bits of each 64-bit integer of a dense array, as s32: a view."""
    kind = sys.modules["torch"].int32 if is_tensor(array) else np.int32
    return cast(AnyArray, array).view(kind)[..., ::2]


def blocks(count: int, size: int) -> int:
    """How many blocks of `size` cover `count`."""
    return -(-count // size)


def pack_width(*arrays: AnyArray) -> int:
    """How many neighbouring elements an access of 16 bytes has: 1 where one of the arrays does not lie so."""
    handles = [memory().bind(array) for array in arrays]
    aligned = all(one.data_ptr() % _PACK_BYTES == 0 for one in handles)
    return max(_PACK_BYTES // one.dtype.numpy.itemsize for one in handles) if aligned else 1
