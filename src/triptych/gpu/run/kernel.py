"""Kernels ready to run: PTX text, parsed and analysed once, compiled when first launched."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from triptych.core.cache import key_of
from triptych.core.errors import UnknownName
from triptych.gpu.isa.types import TYPES
from triptych.gpu.lower.analysis import KernelAnalysis, analyse
from triptych.gpu.lower.compile_kernel import compile_form
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Function, Module, Variable


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: its PTX type, bytes, alignment and whether it is declared a pointer."""

    name: str
    type: str
    size: int
    align: int
    is_pointer: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel of a module, as a launcher needs to know it."""

    name: str
    parameters: tuple[Parameter, ...]
    required_block: tuple[int, int, int] | None
    """`.reqntid`."""
    max_threads: int | None
    """Threads of a block by `.maxntid` or `.reqntid`."""
    static_shared_bytes: int


@dataclass(frozen=True, slots=True)
class GpuModule:
    """A parsed PTX module."""

    module: Module
    entries: Mapping[str, Entry]
    key: str


def size_of(variable: Variable) -> int:
    """Bytes of a variable."""
    count = 1 if variable.count is None else variable.count
    return count * TYPES[variable.type].bytes


def _entry(module: Module, function: Function) -> Entry:
    parameters = tuple(
        Parameter(v.name, v.type, size_of(v), max(v.align, 1), v.is_pointer) for v in function.parameters
    )
    required = function.directives.get("reqntid")
    most = required or function.directives.get("maxntid")
    block = None if required is None else _three(required)
    threads = None
    if most is not None:
        threads = 1
        for extent in most:
            threads *= extent
    shared = [v for v in (*module.variables.values(), *function.variables) if v.space == "shared"]
    total = 0
    for variable in shared:
        align = max(variable.align, 1)
        total = -(-total // align) * align + size_of(variable)
    return Entry(function.name, parameters, block, threads, total)


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


@lru_cache(maxsize=256)
def load(text: str) -> GpuModule:
    """Parses PTX text.

    Raises:
        PtxSyntaxError: the text is not PTX, or is cut short.
    """
    module = parse(text)
    entries = {f.name: _entry(module, f) for f in module.functions.values() if f.is_entry and f.body is not None}
    return GpuModule(module, entries, key_of(text))


class Kernel:
    """One kernel's analysis and machine code. Safe to use from several threads."""

    def __init__(self, gpu_module: GpuModule, name: str, *, rows: bool) -> None:
        """Analyses the kernel; code is made at its first launch.

        `rows`: for blocks whose warps each lie in one row of threads, where %tid.x ascends and %tid.y is the same.
        """
        if name not in gpu_module.entries:
            raise UnknownName.of("kernel", name, gpu_module.entries)
        module = gpu_module.module
        self.entry = gpu_module.entries[name]
        self.variables = tuple(v for v in module.variables.values() if v.space in ("global", "const"))
        symbols = {v.name: index for index, v in enumerate(self.variables)}
        self.analysis: KernelAnalysis = analyse(module, module.functions[name], symbols, rows=rows)
        self._key = key_of(gpu_module.key, str(rows))
        self._lock = threading.Lock()
        self._code: dict[str, int] = {}

    def code(self, form: str) -> int:
        """The address of the kernel's code in a form, made now where it is not there yet."""
        with self._lock:
            if form not in self._code:
                self._code[form] = compile_form(self.analysis, form, self._key)
            return self._code[form]

    def known_code(self, form: str) -> int:
        """The address of the code in a form, 0 where it was not needed yet."""
        return self._code.get(form, 0)


@lru_cache(maxsize=256)
def kernel_of(text: str, name: str, *, rows: bool) -> Kernel:
    """The kernel of that name in PTX text, for blocks whose warps lie in rows of threads or for any."""
    return Kernel(load(text), name, rows=rows)
