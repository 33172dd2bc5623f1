"""Where a kernel's variables lie: parameters, shared, local, and the module's global and constant variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from triptych.core.errors import ArgumentError
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.plan import Argument, Struct
from triptych.gpu.flow import code_addresses
from triptych.gpu.hardware import FIRST_VARIABLE_ADDRESS
from triptych.gpu.oracle.memory import Bytes
from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.variables import size_of


class _VariableSpace(AddressSpace):
    FIRST_ADDRESS = FIRST_VARIABLE_ADDRESS


@dataclass(frozen=True, slots=True)
class VariableLayout:
    """The address of each variable in its own space, and the sizes of the spaces."""

    addresses: Mapping[str, int]
    parameter_bytes: int
    shared_start: int
    """Where the kernel's own shared memory begins."""
    shared_bytes: int
    """The end of the static part; dynamic shared memory follows."""
    dynamic_start: int
    """Where dynamic shared memory begins in a block that has some."""
    local_bytes: int
    """Of one thread."""
    memory: Mapping[Storage, Bytes]
    """The module's global and constant variables, at their initial values."""


def _pack(variables: Iterable[Variable], addresses: dict[str, int], end: int = 0) -> int:
    """Gives each variable the next aligned address from `end` on; returns where they end."""
    for variable in variables:
        start = -(-end // variable.align) * variable.align
        addresses[variable.name] = start
        end = start + size_of(variable)
    return end


def lay_out_variables(module: Module, function: Function, shared_start: int) -> VariableLayout:
    """Lays out the variables that a kernel can name, shared ones from `shared_start` on.

    Pointers to functions among them hold the functions' addresses.
    """
    addresses: dict[str, int] = {}
    parameter_bytes = _pack(function.parameters, addresses)
    shared = [v for v in (*module.variables.values(), *function.variables) if v.space == "shared"]
    shared_bytes = _pack((v for v in shared if v.count != 0), addresses, shared_start)
    dynamic = [v for v in shared if v.count == 0]
    align = max((16, *(v.align for v in dynamic))) if dynamic else 1
    start = -(-shared_bytes // align) * align
    addresses.update((v.name, start) for v in dynamic)
    local_bytes = _pack((v for v in function.variables if v.space == "local"), addresses)
    variables = [v for v in module.variables.values() if v.space in ("global", "const")]
    memory = _module_memory(variables, addresses, code_addresses(module))
    return VariableLayout(addresses, parameter_bytes, shared_start, shared_bytes, start, local_bytes, memory)


def _module_memory(
    variables: list[Variable], addresses: dict[str, int], functions: Mapping[str, int]
) -> dict[Storage, Bytes]:
    space = _VariableSpace()
    storages = {v.name: space.place(v.name, size_of(v), writable=v.space == "global") for v in variables}
    addresses.update((name, storage.address) for name, storage in storages.items())
    memory: dict[Storage, Bytes] = {}
    for variable in variables:
        data = bytearray((variable.initial or b"").ljust(size_of(variable), b"\0"))
        for offset, symbol in variable.references:
            start = functions[symbol.name] if symbol.name in functions else storages[symbol.name].address
            data[offset : offset + 8] = (start + symbol.offset).to_bytes(8, "little")
        memory[storages[variable.name]] = np.frombuffer(data, np.uint8).copy()
    return memory


def pack_arguments(function: Function, layout: VariableLayout, arguments: Iterable[Argument]) -> Bytes:
    """The parameter block of a launch.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
    """
    given = list(arguments)
    if len(given) != len(function.parameters):
        raise ArgumentError(f"kernel {function.name} takes {len(function.parameters)} arguments, not {len(given)}")
    block = bytearray(max(layout.parameter_bytes, 8))
    for parameter, argument in zip(function.parameters, given, strict=True):
        data = _argument_bytes(argument)
        if len(data) != size_of(parameter):
            raise ArgumentError(
                f"kernel {function.name}: parameter {parameter.name} takes {size_of(parameter)} bytes, not {len(data)}"
            )
        start = layout.addresses[parameter.name]
        block[start : start + len(data)] = data
    return np.frombuffer(bytes(block), np.uint8)


def _argument_bytes(argument: Argument) -> bytes:
    if isinstance(argument, Handle):
        return argument.data_ptr().to_bytes(8, "little")
    if isinstance(argument, Struct):
        return argument.packed
    return np.array([argument.value]).astype(argument.dtype.numpy).tobytes()
