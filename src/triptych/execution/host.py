"""Arrays of the host, whoever made them: numpy, torch or ourselves."""

from __future__ import annotations

import weakref
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from triptych.core.dtypes import DTYPES, DType, dtype_of
from triptych.core.errors import ArgumentError, UnknownName
from triptych.execution.host_memory import Extent, HostArray, Owner, Owners
from triptych.execution.torch_tensors import from_torch, is_tensor, is_tensor_type, torch_owner

_NOBODY: Owners = {}


class Hosted(Protocol):
    """An array of ours, or anybody's, that keeps its elements in a numpy array."""

    @property
    def host_buffer(self) -> NDArray[Any]:
        """The elements; a view, never a copy."""
        ...


def _is_hosted_type(kind: type[object]) -> bool:
    # `issubclass` of a protocol runs Python's own generators, in whose end an interruption would be lost.
    return hasattr(kind, "host_buffer")


def _is_hosted(value: object) -> TypeGuard[Hosted]:
    return _is_hosted_type(type(value))


def host_array(array: object, known: Owners = _NOBODY) -> HostArray:
    """Where the elements of `array` lie: numpy arrays, arrays of ours, torch tensors in the host's memory.

    Its owner is the one that is `known`, where it is.

    Raises:
        ArgumentError: for anything else, and for element types that no kernel can read.
    """
    if isinstance(array, np.ndarray):
        return _from_numpy(cast(NDArray[Any], array), known)
    if is_tensor(array):
        return from_torch(array, known)
    if _is_hosted(array):
        return _from_numpy(array.host_buffer, known)
    raise ArgumentError(
        f"expected an array, got {type(array).__name__}",
        hint="pass a numpy array, a triptych array or a torch tensor in the host's memory",
    )


def is_array(value: object) -> bool:
    """Whether `host_array` would take the value for an array (scalars of numpy are none)."""
    return _is_array_type(type(value))


@lru_cache(maxsize=1024)
def _is_array_type(kind: type[object]) -> bool:
    return is_tensor_type(kind) or _is_hosted_type(kind) or issubclass(kind, np.ndarray)


def _numpy_extent(array: NDArray[Any]) -> Extent:
    if array.flags.forc:  # `byte_bounds` is slow
        return Extent(_start(array), array.nbytes, array.flags.writeable)
    low, high = byte_bounds(array)
    return Extent(low, high - low if array.size else 0, array.flags.writeable)


def _start(array: NDArray[Any]) -> int:
    """The host address of the first element."""
    return array.__array_interface__["data"][0]


def _behind(array: NDArray[Any]) -> object:
    """What lends `array` its memory, None for an owner; numpy's wrappers of other arrays are looked through."""
    base = cast(object, array.base)
    if isinstance(base, memoryview):
        return cast("memoryview[Any]", base).obj
    inner: object = getattr(base, "base", None)  # of `as_strided`'s own wrapper
    return cast(object, inner) if isinstance(inner, np.ndarray) else base


def _numpy_owner(array: NDArray[Any], known: Owners) -> Owner:
    """The array at the end of the chain of views, or the torch storage behind it."""
    top, base = array, _behind(array)
    while isinstance(base, np.ndarray):
        top = cast(NDArray[Any], base)
        base = _behind(top)
    if is_tensor(base):
        return torch_owner(base, known)
    owner = known.get(id(top))
    if owner is not None and owner.look() is top:
        same = top.flags.writeable == owner.extent.writable if base is None else owner.extent == _whole(top, base)
        if same:
            return owner
    # numpy refuses to resize an array that has a weak reference: it cannot move.
    return Owner(id(top), _whole(top, base), weakref.ref(top), foreign=base is not None)


def _whole(top: NDArray[Any], base: object) -> Extent:
    """All of the buffer (bytes, a mapped file …) that `top` looks into, where there is one; else `top`'s own memory."""
    extent = _numpy_extent(top)
    if base is None:
        return extent
    try:
        buffer = _numpy_extent(np.frombuffer(cast(bytes, base), np.uint8))
    except (TypeError, ValueError, BufferError, AttributeError):
        return extent
    return buffer if buffer.contains(extent) else extent


_RAW_KINDS = frozenset("VcMm")
"""numpy's kinds whose elements reach a kernel as raw bytes: structs, complex numbers, dates and durations."""


def _element(dtype: np.dtype[Any]) -> DType | None:
    """The element type, None for raw bytes."""
    if dtype.hasobject:
        raise ArgumentError("an array of Python objects", hint="kernels read numbers: convert it with .astype(…)")
    if not dtype.isnative:
        raise ArgumentError(
            f"a big-endian array ({dtype.str})", hint="convert it: array.astype(array.dtype.newbyteorder('='))"
        )
    try:
        return dtype_of(dtype)
    except UnknownName:
        if dtype.kind in _RAW_KINDS:
            return None
        raise ArgumentError(
            f"an array of dtype {dtype}, which no kernel language has", hint=f"known: {', '.join(DTYPES)}"
        ) from None


def _from_numpy(array: NDArray[Any], known: Owners) -> HostArray:
    owner, element = _numpy_owner(array, known), array.dtype
    is_whole = array.base is None and array.flags.forc
    start = owner.extent.start if is_whole else _start(array)  # which is slow
    dtype = _element(element)
    if dtype is not None:
        return HostArray(owner, element, dtype, array.shape, array.strides, start)
    shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    return HostArray(owner, element, DTYPES["u8"], shape, strides, start, raw=True)
