"""Kernels ready to run: PTX text, parsed and analysed once, compiled when first launched."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from triptych.core.cache import cache, key_of
from triptych.core.errors import UnknownName
from triptych.gpu.isa.types import TYPES
from triptych.gpu.lower.analysis import KernelAnalysis, Places, analyse, lay_out_shared
from triptych.gpu.lower.compile_kernel import KernelCode, compile_form
from triptych.gpu.lower.engine import Unit, generator_digest
from triptych.gpu.lower.units import units_for
from triptych.gpu.run.counting_plan import CountingPlan, plan_counting
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
    return Entry(function.name, parameters, block, threads, lay_out_shared(module, function)[1])


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


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a launch needs to know of a kernel besides its code; kept in the cache beside it."""

    places: Places
    frame_bytes: int
    blocks: int
    guards: int
    sites: int
    counting: CountingPlan
    linked: tuple[Unit, ...]

    @classmethod
    def of(cls, analysis: KernelAnalysis) -> KernelFacts:
        """From the analysis."""
        return cls(
            analysis.places, analysis.frame_bytes, len(analysis.graph.blocks), len(analysis.guarded_flops),
            len(analysis.sites), plan_counting(analysis), units_for(i for block in analysis.bound for i in block),
        )  # fmt: skip


class Kernel:
    """One kernel's facts and machine code. Safe to use from several threads."""

    def __init__(self, gpu_module: GpuModule, name: str, *, rows: bool) -> None:
        """Looks the kernel up; it is taken apart only where the cache does not know it.

        `rows`: for blocks whose warps each lie in one row of threads, where %tid.x ascends and %tid.y is the same.

        Raises:
            UnknownName: the module has no such kernel.
            UnsupportedInstruction: an instruction of it has no row in the table.
        """
        if name not in gpu_module.entries:
            raise UnknownName.of("kernel", name, gpu_module.entries)
        self._module = gpu_module.module
        self._rows = rows
        self.entry = gpu_module.entries[name]
        self.variables = tuple(v for v in self._module.variables.values() if v.space in ("global", "const"))
        self._key = key_of(generator_digest(), gpu_module.key, name, str(rows))
        self._lock = threading.RLock()
        self._code: dict[str, KernelCode] = {}
        made = cache().fetch("facts", self._key, lambda: pickle.dumps(KernelFacts.of(self.analysis)))
        self.facts: KernelFacts = pickle.loads(made)

    @cached_property
    def analysis(self) -> KernelAnalysis:
        """The kernel taken apart."""
        symbols = {v.name: index for index, v in enumerate(self.variables)}
        return analyse(self._module, self._module.functions[self.entry.name], symbols, rows=self._rows)

    def code(self, form: str) -> KernelCode:
        """The kernel's code in a form, made now where it is not there yet."""
        with self._lock:
            if form not in self._code:
                self._code[form] = compile_form(self._key, form, lambda: self.analysis, self.facts.linked)
            return self._code[form]

    def known_code(self, form: str) -> int:
        """The address of the code in a form, 0 where it was not needed yet."""
        return self._code[form].form if form in self._code else 0


@lru_cache(maxsize=256)
def kernel_of(text: str, name: str, *, rows: bool) -> Kernel:
    """The kernel of that name in PTX text, for blocks whose warps lie in rows of threads or for any."""
    return Kernel(load(text), name, rows=rows)
