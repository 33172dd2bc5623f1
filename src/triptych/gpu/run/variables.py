"""What outlives launches on a device: `.global` and `.const` variables of modules, and the heap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import LaunchError
from triptych.core.forks import StateLock
from triptych.core.handles import AddressSpace, Storage
from triptych.gpu.hardware import (
    FIRST_HEAP_ADDRESS,
    FIRST_VARIABLE_ADDRESS,
    GRID_WORKSPACE,
    GRID_WORKSPACE_BYTES,
    PARAM_WINDOW,
)
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.host_memory import address_of
from triptych.gpu.run.module import GpuModule
from triptych.gpu.run.storage_table import Region
from triptych.gpu.syntax.variables import size_of


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """The storages of a module's variables and the table of their addresses, in the kernels' order of symbols."""

    memory: Mapping[Storage, NDArray[np.uint8]]
    addresses: NDArray[np.int64]
    place: int
    """Where that table lies on the host."""
    region: Region

    @classmethod
    def of(cls, memory: Mapping[Storage, NDArray[np.uint8]], addresses: NDArray[np.int64]) -> ModuleMemory:
        """With the region of the variables."""
        return cls(memory, addresses, address_of(addresses), Region.of(memory))

    def clone(self) -> ModuleMemory:
        """The same contents at the same addresses, in memory of their own."""
        return self.of({storage: data.copy() for storage, data in self.memory.items()}, self.addresses)

    def variable(self, name: str) -> tuple[Storage, NDArray[np.uint8]] | None:
        """Where a variable lies, and its bytes, in place; None where the module has none of that name."""
        return next((place for place in self.memory.items() if place[0].name == name), None)


class _VariableSpace(AddressSpace):
    FIRST_ADDRESS = FIRST_VARIABLE_ADDRESS


class DeviceMemory:
    """What a device keeps from launch to launch: the variables of its modules, and the heap. For several threads."""

    def __init__(self) -> None:
        """Of a device on which nothing has run yet."""
        self._lock = StateLock()
        self._space = _VariableSpace()
        self._modules: dict[str, ModuleMemory] = {}
        self._heap: DeviceHeap | None = None

    def variables_of(self, module: GpuModule) -> ModuleMemory:
        """The variables of a module, at their initial values where nobody has asked for them here yet.

        Modules of the same text are one.
        """
        found = self._modules.get(module.key)
        if found is not None:
            return found
        with self._lock:
            if module.key not in self._modules:
                self._modules[module.key] = _load(module, self._space)
            return self._modules[module.key]

    def heap(self, size: int) -> DeviceHeap:
        """The heap, made with `size` bytes where there is none, or where nothing is allocated on another size's.

        Raises:
            LaunchError: the device's addresses, or the host's memory, have no room for it.
        """
        with self._lock:
            if self._heap is None or not (self._heap.live or self._heap.has_size(size)):
                self._heap = _make_heap(size)
            return self._heap

    def heap_in_use(self) -> DeviceHeap | None:
        """The heap where something is allocated on it: any kernel may reach it."""
        heap = self._heap
        return heap if heap is not None and heap.live else None

    def clone(self) -> DeviceMemory:
        """Another device's with the same contents, at the same addresses."""
        other = DeviceMemory()
        with self._lock:
            other._space = self._space.clone()
            other._heap = None if self._heap is None else self._heap.clone()
            other._modules = {key: module.clone() for key, module in self._modules.items()}
        return other

    def become(self, other: DeviceMemory) -> None:
        """Takes over what ran on a clone, which is not to be used any more."""
        with self._lock:
            self._space, self._heap, self._modules = other._space, other._heap, other._modules


def _make_heap(size: int) -> DeviceHeap:
    try:
        if size > PARAM_WINDOW - FIRST_HEAP_ADDRESS:
            raise MemoryError
        return DeviceHeap(size)
    except MemoryError as error:
        message = f"there is no room for a heap of {size} bytes"
        raise LaunchError(message, hint="set TRIPTYCH_HEAP_BYTES to less") from error


def _load(module: GpuModule, space: AddressSpace) -> ModuleMemory:
    """Memory for the variables of a module, set to their initial values."""
    storages = {v.name: space.place(v.name, size_of(v), writable=v.space == "global") for v in module.variables}
    places = dict(module.pointers) | {name: storage.address for name, storage in storages.items()}
    memory: dict[Storage, NDArray[np.uint8]] = {}
    for variable in module.variables:
        storage = storages[variable.name]
        data = np.zeros(storage.size, np.uint8)
        if variable.initial:
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for offset, symbol in variable.references:
            address = places[symbol.name] + symbol.offset
            data[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
        memory[storage] = data
    addresses = np.array([storages[v.name].address for v in module.variables] or [0], np.int64)
    return ModuleMemory.of(memory, addresses)


def grid_workspace() -> dict[Storage, NDArray[np.uint8]]:
    """What grid-wide barriers of one cooperative launch count in, all 0."""
    storage = Storage("grid workspace", GRID_WORKSPACE, GRID_WORKSPACE_BYTES, writable=True)
    return {storage: np.zeros(GRID_WORKSPACE_BYTES, np.uint8)}
