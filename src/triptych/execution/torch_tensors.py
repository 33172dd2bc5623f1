"""torch's tensors, without importing torch: where nobody has imported it, nothing is a tensor."""

# torch has no public weak reference to a storage; these are the names that its own multiprocessing uses.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Protocol, TypeGuard

from triptych.core.dtypes import DTYPES, DType
from triptych.core.errors import ArgumentError
from triptych.execution.host_memory import Extent, HostArray, Owner


class _Storage(Protocol):
    """What is needed of `torch.UntypedStorage`."""

    _cdata: int

    def data_ptr(self) -> int: ...
    def nbytes(self) -> int: ...
    def _weak_ref(self) -> int: ...
    @classmethod
    def _free_weak_ref(cls, pointer: int) -> None: ...
    @classmethod
    def _new_with_weak_ptr(cls, pointer: int) -> _Storage | None: ...


class _Device(Protocol):
    type: str


class Tensor(Protocol):
    """What is needed of `torch.Tensor`."""

    @property
    def device(self) -> _Device:
        """Where the elements lie."""
        ...

    @property
    def layout(self) -> object:
        """Dense (`torch.strided`) or a kind of sparse."""
        ...

    @property
    def dtype(self) -> object:
        """The element type."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        ...

    def element_size(self) -> int:
        """Bytes of an element."""
        ...

    def stride(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis."""
        ...

    def data_ptr(self) -> int:
        """The host address of the first element."""
        ...

    def untyped_storage(self) -> _Storage:
        """What owns the memory."""
        ...


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Whether the value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


class _WeakStorage:
    """A weak reference to torch's C++ storage.

    Python's own weak references die with the wrapper object, which torch makes anew at will while the storage lives on.
    """

    def __init__(self, storage: _Storage) -> None:
        self._type = type(storage)
        self._pointer = storage._weak_ref()

    def look(self) -> _Storage | None:
        return self._type._new_with_weak_ptr(self._pointer)

    def __del__(self) -> None:
        self._type._free_weak_ref(self._pointer)


_TORCH_DTYPES = {
    "torch.bool": "b1",
    "torch.int8": "s8",
    "torch.int16": "s16",
    "torch.int32": "s32",
    "torch.int64": "s64",
    "torch.uint8": "u8",
    "torch.uint16": "u16",
    "torch.uint32": "u32",
    "torch.uint64": "u64",
    "torch.float16": "f16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.bfloat16": "bf16",
    "torch.float8_e4m3fn": "f8e4m3fn",
    "torch.float8_e5m2": "f8e5m2",
}
_TORCH_RAW = frozenset({"torch.complex64", "torch.complex128"})


def from_torch(tensor: Tensor) -> HostArray:
    """Where the elements of a tensor lie.

    Raises:
        ArgumentError: for a tensor on another device, a sparse one, and element types that no kernel can read.
    """
    with sys.modules["torch"]._C.DisableTorchFunction():  # what torch itself says, whatever modes are in force
        return _from_torch(tensor)


def _from_torch(tensor: Tensor) -> HostArray:
    if tensor.device.type != "cpu" or not _is_dense(tensor.layout):
        raise ArgumentError(
            f"a {tensor.layout} tensor on device {tensor.device}", hint="pass a dense tensor on the CPU: tensor.cpu()"
        )
    item, element = tensor.element_size(), tensor.dtype
    shape = tuple(tensor.shape)
    strides = tuple(step * item for step in tensor.stride())
    owner, start = torch_owner(tensor), tensor.data_ptr()
    dtype = _element(element)
    if dtype is None:
        return HostArray(owner, element, DTYPES["u8"], (*shape, item), (*strides, 1), start, raw=True)
    return HostArray(owner, element, dtype, shape, strides, start)


@lru_cache
def _is_dense(layout: object) -> bool:
    return str(layout) == "torch.strided"


@lru_cache
def _element(dtype: object) -> DType | None:
    """The element type, None for raw bytes."""
    name = str(dtype)
    if name in _TORCH_RAW:
        return None
    if name not in _TORCH_DTYPES:
        raise ArgumentError(f"a tensor of dtype {name}, which no kernel language has", hint="convert it with .to(…)")
    return DTYPES[_TORCH_DTYPES[name]]


def torch_owner(tensor: Tensor) -> Owner:
    """The tensor's storage as an owner."""
    storage = tensor.untyped_storage()
    handle = _WeakStorage(storage)

    def look() -> tuple[object, Extent] | None:
        alive = handle.look()
        if alive is None:
            return None
        return alive, Extent(int(alive.data_ptr()), int(alive.nbytes()), writable=True)

    extent = Extent(int(storage.data_ptr()), int(storage.nbytes()), writable=True)
    return Owner(int(storage._cdata), extent, look, foreign=True)
