"""A module's `.global` and `.const` variables: their memory lives as long as the module, over all its launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import AddressSpace, Storage
from triptych.core.errors import UnsupportedFeature
from triptych.gpu.hardware import FIRST_VARIABLE_ADDRESS
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
def module_memory(variables: tuple[Variable, ...]) -> ModuleMemory:
    """Memory for a module's variables, set to their initial values.

    Raises:
        UnsupportedFeature: a variable is initialised with the address of a function.
    """
    storages = {v.name: _SPACE.place(v.name, size_of(v), writable=v.space == "global") for v in variables}
    memory: dict[Storage, NDArray[np.uint8]] = {}
    for variable in variables:
        storage = storages[variable.name]
        data = np.zeros(storage.size, np.uint8)
        if variable.initial:
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for offset, symbol in variable.references:
            if symbol.name not in storages:
                raise UnsupportedFeature(f"variable {variable.name} holds the address of '{symbol.name}', a function")
            address = storages[symbol.name].address + symbol.offset
            data[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
        memory[storage] = data
    addresses = np.array([storages[v.name].address for v in variables] or [0], np.int64)
    return ModuleMemory(memory, addresses)


def memory_of(kernel: Kernel) -> ModuleMemory:
    """The memory of the variables of a kernel's module."""
    return module_memory(kernel.variables)
