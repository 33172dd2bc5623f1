"""torch's tensors, without importing torch: where nobody has imported it, nothing is a tensor."""

# torch has no public weak reference to a storage; these are the names that its own multiprocessing uses.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeGuard

from triptych.core.dtypes import DTYPES, DType
from triptych.core.errors import ArgumentError
from triptych.core.handles import Handle, Storage
from triptych.execution.host_memory import Extent, HostArray, Owner, Owners

if TYPE_CHECKING:  # for the type checker alone
    from triptych.execution.torch_types import Tensor, UntypedStorage


CAPTURED = "_triptych_captured"
"""The attribute of a torch storage without data that names the plan's storage which it stands for."""


def captured_storage(tensor: Tensor) -> Storage | None:
    """What a tensor without data stands for; None of any other."""
    with sys.modules["torch"]._C.DisableTorchFunction():  # what torch itself says, whatever modes are in force
        return getattr(tensor.untyped_storage(), CAPTURED, None) if tensor.is_meta else None


def captured_tensor(tensor: Tensor) -> Handle | None:
    """The handle of a tensor without data that stands for an array of a plan; None of any other.

    Raises:
        ArgumentError: for element types that no kernel can read.
    """
    storage = captured_storage(tensor)
    if storage is None:
        return None
    with sys.modules["torch"]._C.DisableTorchFunction():
        dtype = _element(tensor.dtype)
        if dtype is None:
            raise ArgumentError(f"a tensor of dtype {tensor.dtype}, which no kernel language has")
        strides = tuple(step * dtype.bytes for step in tensor.stride())
        return Handle(storage, dtype, tuple(tensor.shape), strides, tensor.storage_offset() * dtype.bytes)


@lru_cache(maxsize=1024)
def is_tensor_type(kind: type[object]) -> bool:
    """Whether values of the type are torch tensors. One that is none will not be, though torch be imported later."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, torch.Tensor)


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Whether the value is a torch tensor."""
    return is_tensor_type(type(value))


class _WeakStorage:
    """A weak reference to torch's C++ storage.

    Python's own weak references die with the wrapper object, which torch makes anew at will while the storage lives on.
    """

    def __init__(self, storage: UntypedStorage) -> None:
        self._free = type(storage)._free_weak_ref
        self.revive = type(storage)._new_with_weak_ptr
        """Gives the storage for the pointer, None once it is gone."""
        self.pointer = storage._weak_ref()

    def __del__(self) -> None:
        self._free(self.pointer)


TORCH_DTYPES = {
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
"""Our names of torch's element types, by torch's."""
_TORCH_RAW = frozenset({"torch.complex64", "torch.complex128"})


def from_torch(tensor: Tensor, known: Owners) -> HostArray:
    """Where the elements of a tensor lie; its owner is the one that is `known`, where it is.

    Raises:
        ArgumentError: for a tensor on another device, a sparse one, and element types that no kernel can read.
    """
    with sys.modules["torch"]._C.DisableTorchFunction():  # what torch itself says, whatever modes are in force
        seen = _seen.get(id(tensor))
        if seen is not None and seen.holds(tensor):
            return seen.host
        host = _from_torch(tensor, known)
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        reference = weakref.ref(tensor, partial(_seen.pop, id(tensor)))  # C alone: a signal's handler cannot come in
        _seen[id(tensor)] = _Seen(reference, tuple(tensor.shape), tensor.stride(), host)
        return host


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found out of a tensor, which may have changed in place since."""

    reference: weakref.ref[Tensor]
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    host: HostArray

    def holds(self, tensor: Tensor) -> bool:
        """Whether it is still so."""
        host, storage = self.host, tensor.untyped_storage()
        extent = host.owner.extent
        return (
            self.reference() is tensor
            and storage._cdata == host.owner.identity
            and tensor.data_ptr() == host.start
            and tensor.shape == self.shape
            and tensor.stride() == self.stride
            and tensor.dtype is host.element
            and storage.data_ptr() == extent.start
            and storage.nbytes() == extent.size
        )


_seen: dict[int, _Seen] = {}
"""By identity: a launch asks for the same tensors as the one before, and to look at one anew takes twice as long."""
_MOST_SEEN = 4096


def _from_torch(tensor: Tensor, known: Owners) -> HostArray:
    if not tensor.is_cpu or not _is_dense(tensor.layout):
        raise ArgumentError(
            f"a {tensor.layout} tensor on device {tensor.device}", hint="pass a dense tensor on the CPU: tensor.cpu()"
        )
    item, element = tensor.element_size(), tensor.dtype
    shape = tuple(tensor.shape)
    strides = tuple([step * item for step in tensor.stride()])  # a list is quicker than a generator
    owner, start = torch_owner(tensor, known), tensor.data_ptr()
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
    if name not in TORCH_DTYPES:
        raise ArgumentError(f"a tensor of dtype {name}, which no kernel language has", hint="convert it with .to(…)")
    return DTYPES[TORCH_DTYPES[name]]


def torch_owner(tensor: Tensor, known: Owners) -> Owner:
    """The tensor's storage as an owner; the one that is `known`, where it is and lies where it did."""
    storage = tensor.untyped_storage()
    start, size, identity = storage.data_ptr(), storage.nbytes(), storage._cdata
    owner = known.get(identity)
    # While an owner holds its weak reference, torch gives no other storage the same identity.
    if owner is not None and owner.extent.start == start and owner.extent.size == size:
        return owner
    weak = _WeakStorage(storage)

    def look() -> object | None:
        alive = weak.revive(weak.pointer)
        return alive if alive is not None and alive.data_ptr() == start and alive.nbytes() == size else None

    return Owner(identity, Extent(start, size, writable=True), look, foreign=True)
