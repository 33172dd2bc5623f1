"""A module's `.global` and `.const` variables: their memory lives as long as the module, over all its launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from triptych.core.handles import AddressSpace, Storage
from triptych.gpu.hardware import FIRST_VARIABLE_ADDRESS, GRID_WORKSPACE, GRID_WORKSPACE_BYTES
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.module import size_of
from triptych.gpu.syntax.ast import Variable


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """The storages of a module's variables and the table of their addresses, in the kernels' order of symbols."""

    memory: Mapping[Storage, NDArray[np.uint8]]
    addresses: NDArray[np.int64]


class _VariableSpace(AddressSpace):
    FIRST_ADDRESS = FIRST_VARIABLE_ADDRESS


_SPACE = _VariableSpace()


@cache
def module_memory(variables: tuple[Variable, ...], pointers: tuple[tuple[str, int], ...]) -> ModuleMemory:
    """Memory for a module's variables, set to their initial values; `pointers` are the addresses of functions."""
    storages = {v.name: _SPACE.place(v.name, size_of(v), writable=v.space == "global") for v in variables}
    places = dict(pointers) | {name: storage.address for name, storage in storages.items()}
    memory: dict[Storage, NDArray[np.uint8]] = {}
    for variable in variables:
        storage = storages[variable.name]
        data = np.zeros(storage.size, np.uint8)
        if variable.initial:
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for offset, symbol in variable.references:
            address = places[symbol.name] + symbol.offset
            data[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
        memory[storage] = data
    addresses = np.array([storages[v.name].address for v in variables] or [0], np.int64)
    return ModuleMemory(memory, addresses)


def memory_of(kernel: Kernel) -> ModuleMemory:
    """The memory of the variables of a kernel's module."""
    return module_memory(kernel.variables, kernel.pointers)


def grid_workspace() -> dict[Storage, NDArray[np.uint8]]:
    """What grid-wide barriers of one cooperative launch count in, all 0."""
    storage = Storage("grid workspace", GRID_WORKSPACE, GRID_WORKSPACE_BYTES, writable=True)
    return {storage: np.zeros(GRID_WORKSPACE_BYTES, np.uint8)}
