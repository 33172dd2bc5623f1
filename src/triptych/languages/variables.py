"""Module-scope variables as Python sees them: `module.variables["c_Kernel"].copy_from(array)`.

What `cudaMemcpyToSymbol` and `cudaMemcpyFromSymbol` do. CUDA and PTX share it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych import gpu
from triptych.core.dtypes import DTYPES, DType
from triptych.core.errors import ArgumentError, UnknownName, UsageError
from triptych.core.plan import Argument, Program, SetVariable, Struct
from triptych.execution.demangle import unqualified, variable_name
from triptych.execution.host import host_array, is_array
from triptych.execution.host_memory import elements
from triptych.execution.memory import memory
from triptych.execution.variables import store_here, stored_here, variable_here
from triptych.languages.arguments import POINTER_BYTES, conversion
from triptych.languages.calling import calling_location
from triptych.languages.parameters import Declared, same_size

_SPACES = {"const": "constant", "global": "global"}


class ModuleVariable:
    """A `__constant__` or `__device__` variable on the device of this process, the same that kernels see."""

    def __init__(self, variable: gpu.Variable, programs: Sequence[Program], declared: Declared | None) -> None:
        """Those of `programs` that declare it have it, each its own; `declared` is what the source says of its type."""
        self._programs = programs
        self._variable = variable
        self._is_pointer = declared is not None and declared.pointer
        dtype = (declared and declared.element) or DTYPES.get(variable.type)
        self._dtype = dtype if dtype is not None and self.size % dtype.bytes == 0 else None

    @property
    def name(self) -> str:
        """Its name as its author writes it: `ns::name`."""
        return variable_name(self.symbol)

    @property
    def symbol(self) -> str:
        """Its name in the PTX: of C++, the mangled one."""
        return self._variable.name

    @property
    def space(self) -> str:
        """`constant` or `global`."""
        return _SPACES[self._variable.space]

    @property
    def size(self) -> int:
        """Bytes."""
        return gpu.size_of(self._variable)

    @property
    def dtype(self) -> DType | None:
        """The type of an element (`f32`; `u64` of pointers); None where neither the PTX nor the source tells."""
        return self._dtype

    def data_ptr(self) -> int:
        """Its device address, which the module's kernels can take as a pointer."""
        return self._place()[0]

    def copy_from(self, value: object, offset: int | None = None) -> None:
        """Stores `value` in it, for all launches from now on; of plans made from now on it is a part.

        Args:
            value: an array (numpy, triptych, torch on the host) in any layout, whose elements are stored in C order;
                bytes; a number or a list of numbers where the dtype is known. Pointers are device addresses as
                integers (`tt.data_ptr(array)`): stored in a variable that the source declares a pointer, they follow
                their arrays into a plan.
            offset: bytes from where the variable begins to where `value` goes, which may then be shorter than what is
                left; None: `value` has as many bytes as the variable.

        Raises:
            UsageError: where the bytes do not fit, or the elements are of another type than the variable's.
        """
        data = self._bytes_of(value)
        self._check_size("copy_from", len(data), offset)
        node = SetVariable("", self.symbol, offset or 0, self._values(data))
        for program in self._programs:
            _store(program, node)

    def copy_to(self, array: object, offset: int | None = None) -> None:
        """Stores what it holds into `array`.

        Args:
            array: where the bytes go, in C order: numpy, triptych, or torch on the host.
            offset: bytes from where the variable begins to where reading begins; `array` may then have fewer bytes than
                are left. None: `array` has as many as the variable.

        Raises:
            UsageError: where the bytes do not fit, or the array cannot be written.
        """
        target = self._array("copy_to", array)
        self._check_size("copy_to", target.nbytes, offset)
        if not target.flags.writeable:
            raise self._error("copy_to: the array is read-only")
        start = offset or 0
        data = self._place()[1][start : start + target.nbytes]
        target[...] = data.view(target.dtype).reshape(target.shape)

    def numpy(self) -> NDArray[Any]:
        """What it holds now, as a copy: one axis for an array, none for a single value; bytes where no dtype is known.

        C++ types of several elements (`float4`) are flat, and so are arrays of several axes.
        """
        data = self._place()[1].copy().view(np.uint8 if self.dtype is None else self.dtype.numpy)
        return data if self._variable.count is not None or data.size != 1 else data.reshape(())

    def _place(self) -> tuple[int, NDArray[np.uint8]]:
        """The address and the bytes in place."""
        program, found = _first(self._programs, self.symbol)
        place = variable_here(program, found.name)
        assert place is not None, "a module has the variables that its text declares"
        return place[0].address, place[1]

    def _bytes_of(self, value: object) -> bytes:
        if is_array(value):
            return self._array("copy_from", value).tobytes()
        if not isinstance(value, np.generic) or isinstance(value, np.void):
            with suppress(TypeError):
                return bytes(memoryview(cast(bytes, value)))
        return self._numbers(cast(object, value))

    def _array(self, method: str, value: object) -> NDArray[Any]:
        """The elements of an array, in place, where they are of the variable's type."""
        try:
            host = host_array(value)
        except ArgumentError as error:
            raise self._error(f"{method}: expected an array, got {error.message}", error.hint) from error
        if self.dtype is not None and not host.raw and host.dtype.name not in same_size(self.dtype):
            raise self._error(
                f"{method}: expected {self.dtype.numpy} elements, got a {host.label} array",
                conversion(host, [self.dtype]),
            )
        return elements(host, value)

    def _numbers(self, value: object) -> bytes:
        if self.dtype is None:
            raise self._error(
                f"copy_from: expected an array, got {type(value).__name__}",
                "neither the source nor the PTX tells its type: pass an array or bytes",
            )
        try:
            numbers = np.asarray(value)
        except ValueError:  # lists of unequal lengths
            numbers = np.array(None)
        if numbers.dtype.kind not in "biuf":
            raise self._error(f"copy_from: expected {self.dtype.numpy} numbers or an array, got {type(value).__name__}")
        listed = numbers.reshape(-1).tolist()
        for name in (self.dtype.name, *sorted(same_size(self.dtype))):
            if all(map(DTYPES[name].holds, listed)):
                return numbers.astype(DTYPES[name].numpy).tobytes()
        wrong = next(number for number in listed if not self.dtype.holds(number))
        raise self._error(f"copy_from: {wrong!r} is no {self.dtype.numpy}")

    def _check_size(self, method: str, size: int, offset: int | None) -> None:
        start = 0 if offset is None else offset
        if start < 0 or start + size > self.size or (offset is None and size != self.size):
            where = f" at offset {offset}" if offset is not None else ""
            hint = "give offset=0 for a part that begins where the variable does" if 0 < size < self.size else None
            raise self._error(
                f"{method}: it has {self.size} bytes, got {size}{where}", None if offset is not None else hint
            )

    def _values(self, data: bytes) -> tuple[Argument, ...]:
        """The bytes; of a pointer variable, the arrays that its addresses lie in, so that a plan knows them."""
        if not self._is_pointer or len(data) % POINTER_BYTES:
            return (Struct(data),)
        words = (data[start : start + POINTER_BYTES] for start in range(0, len(data), POINTER_BYTES))
        return tuple(memory().at(int.from_bytes(word, "little")) or Struct(word) for word in words)

    def _error(self, message: str, hint: str | None = None) -> UsageError:
        return UsageError(f"variable '{self.name}': {message}", where=calling_location(), hint=hint)

    def __repr__(self) -> str:
        """Name, space, bytes and type."""
        kind = f", {self.dtype}" if self.dtype is not None else ""
        return f"<{self.space} variable {self.name}, {self.size} bytes{kind}>"


class ModuleVariables(Mapping[str, ModuleVariable]):
    """The variables of a module that outlive its launches, by name: `name`, `ns::name`, or the name in the PTX."""

    def __init__(self, program: Program, declared: Mapping[str, Declared | None] | None = None) -> None:
        """`declared` is what the source says of their types, by names without namespaces."""
        self._programs = [program]
        self._declared = declared or {}

    def add(self, program: Program) -> None:
        """Another text of the same source, with variables of its own: what the host stores goes to both."""
        if program not in self._programs:
            for node in (one for before in self._programs for one in stored_here(before)):
                _store(program, node)
            self._programs.append(program)

    def __getitem__(self, name: str) -> ModuleVariable:
        """The variable of a name.

        Raises:
            UnknownName: where no variable has that name, or several have.
        """
        found = self._found(name)
        if len(found) > 1:
            raise UnknownName(
                f"variable '{name}' is not one but {len(found)}", where=calling_location(),
                hint=f"name one of {', '.join(found)}",
            )  # fmt: skip
        if not found:
            known = [variable_name(symbol) for symbol in self._symbols]
            raise UnknownName.of("variable", name, known or ["none"], calling_location())
        _, variable = _first(self._programs, found[0])
        declared = self._declared.get(unqualified(variable_name(found[0])).partition("<")[0])
        return ModuleVariable(variable, self._programs, declared)

    def _found(self, name: str) -> list[str]:
        """The symbols of a name: the PTX's own, else the readable one, else that without namespaces."""
        symbols = self._symbols
        none: list[str] = []
        ways: tuple[Callable[[str], str], ...] = (str, variable_name, lambda one: unqualified(variable_name(one)))
        return next(filter(None, ([one for one in symbols if way(one) == name] for way in ways)), none)

    @property
    def _symbols(self) -> list[str]:
        """Of all texts; what one has in common with those before it once."""
        found: list[str] = []
        for program in self._programs:
            found += [one.name for one in gpu.load(program.text).variables if not _counterpart(found, one.name)]
        return found

    def __contains__(self, name: object) -> bool:
        """Whether a variable, and only one, has the name."""
        return isinstance(name, str) and len(self._found(name)) == 1

    def __iter__(self) -> Iterator[str]:
        """The readable names; of several variables of one, the names in the PTX."""
        names = [variable_name(symbol) for symbol in self._symbols]
        return (name if names.count(name) == 1 else symbol for name, symbol in zip(names, self._symbols, strict=True))

    def __len__(self) -> int:
        """How many there are."""
        return len(self._symbols)

    def __repr__(self) -> str:
        """The names."""
        return f"<variables: {', '.join(self) or 'none'}>"


def _declaration(program: Program, symbol: str) -> gpu.Variable | None:
    """The variable as a program declares it; None where it does not."""
    variables = {variable.name: variable for variable in gpu.load(program.text).variables}
    return variables.get(_counterpart(variables, symbol))


def _counterpart(symbols: Collection[str], symbol: str) -> str:
    """What a text with these symbols calls a variable of another; empty where it has none.

    Names that a text keeps to itself, as those of anonymous namespaces, differ from text to text.
    """
    name = variable_name(symbol)
    return symbol if symbol in symbols else next((one for one in symbols if variable_name(one) == name), "")


def _first(programs: Iterable[Program], symbol: str) -> tuple[Program, gpu.Variable]:
    """The first text that declares a variable which one of them has, and how."""
    pairs = ((program, _declaration(program, symbol)) for program in programs)
    return next((program, variable) for program, variable in pairs if variable is not None)


def _store(program: Program, node: SetVariable) -> None:
    """Does what the node says to a program's own variable, where it has one."""
    variable = _declaration(program, node.variable)
    if variable is not None:
        store_here(program, replace(node, variable=variable.name))
