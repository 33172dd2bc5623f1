"""Which of torch's storages count as the simulated device's memory: the storage objects themselves bear a mark.

torch keeps the Python object of a storage as long as any tensor uses the storage (2.1 and later), with its attributes
and weak references. So a mark is shared by all views, and gone with the memory.
"""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, cast

torch: Any = import_module("torch")

DEVICE: Any = torch.device("cuda", 0)
"""The one device that there is."""
HOST: Any = torch.device("cpu")
_MARK = "_triptych_device_memory"
_Tensor: Any = torch.Tensor


class Usage:
    """Bytes of marked storages that live, and the most that lived at once since `reset`."""

    def __init__(self) -> None:
        """Nothing is allocated."""
        self.allocated = 0
        self.peak = 0
        self._living: dict[int, weakref.ref[Any]] = {}

    def add(self, storage: Any) -> None:
        """A storage has been marked."""
        size, key = int(storage.nbytes()), id(storage)

        def end(_: object) -> None:
            self.allocated -= size
            del self._living[key]

        self._living[key] = weakref.ref(storage, end)
        self.allocated += size
        self.peak = max(self.peak, self.allocated)

    def reset(self) -> None:
        """The peak is what lives now."""
        self.peak = self.allocated


usage = Usage()
"""The device's."""


def storage_of(tensor: Any) -> Any:
    """The tensor's storage; None for one that has none (a sparse tensor, a tensor without data)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def is_marked(tensor: Any) -> bool:
    """Whether the tensor counts as lying on the device. Called where no mode is in force."""
    return hasattr(storage_of(tensor), _MARK)


def mark(tensor: Any) -> Any:
    """Makes the tensor, and all that shares its memory, count as lying on the device; gives it back."""
    storage = storage_of(tensor)
    if storage is not None and not hasattr(storage, _MARK):
        setattr(storage, _MARK, True)
        usage.add(storage)
    return tensor


def mark_new(result: object, inputs: Iterable[Any]) -> None:
    """Marks the tensors of a result, but for those that an operator gives back, or views of them, as they came in."""
    old = None
    for tensor in tensors_in(result):
        if not is_marked(tensor):
            if old is None:
                old = {id(storage_of(one)) for one in inputs}
            if id(storage_of(tensor)) not in old:
                mark(tensor)


def tensors_in(value: object) -> Iterator[Any]:
    """The tensors in a value: itself, or of lists, tuples and dicts."""
    if isinstance(value, _Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in cast("Iterable[object]", value):
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(cast("Mapping[str, object]", value).values()))


def is_cuda(device: object) -> bool:
    """Whether what a script gives as a device means the simulated one: `"cuda"`, `torch.device("cuda", 0)`, `0`."""
    if isinstance(device, str):
        return device.startswith("cuda")
    return getattr(device, "type", None) == "cuda" if not isinstance(device, int) else True
