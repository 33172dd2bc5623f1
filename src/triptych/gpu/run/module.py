"""PTX text as launchers see it: its kernels and variables, kept in the cache; parsed where more of it is needed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from triptych.core.cache import cache, key_of
from triptych.core.forks import LazyProperty
from triptych.gpu.flow import code_addresses, reachable_functions
from triptych.gpu.lower.analysis.variable_layout import lay_out_shared
from triptych.gpu.lower.cache_digest import cache_digest
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.variables import size_of


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
    """Shared memory that it declares itself, up to where the dynamic part begins."""
    shared_variables_end: int
    """Where that ends in a block without a dynamic part."""
    required_cluster: tuple[int, int, int] | None = None
    """`.reqnctapercluster`: the blocks of a cluster, which no launch may give otherwise."""
    needs_cluster: bool = False
    """`.explicitcluster`: a launch must say its cluster, or the kernel requires one."""

    def static_part(self, dynamic_bytes: int) -> int:
        """The bytes of a block's shared memory that are not dynamic, at a launch that gives it so many that are."""
        return self.static_shared_bytes if dynamic_bytes else self.shared_variables_end


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What a launch needs to know of a module; kept in the cache."""

    entries: Mapping[str, Entry]
    variables: tuple[Variable, ...]
    """Those in global and constant memory."""
    pointers: tuple[tuple[str, int], ...]
    """The functions whose addresses variables hold, with these addresses."""

    @classmethod
    def of(cls, module: Module) -> ModuleFacts:
        """From the syntax tree."""
        named = {symbol.name for variable in module.variables.values() for _, symbol in variable.references}
        kernels = [f for f in module.functions.values() if f.is_entry and f.body is not None]
        return cls(
            {f.name: _entry(module, f) for f in kernels},
            tuple(v for v in module.variables.values() if v.space in ("global", "const")),
            tuple((name, address) for name, address in code_addresses(module).items() if name in named),
        )


class GpuModule:
    """A PTX module whose text is known to follow the grammar."""

    def __init__(self, text: str) -> None:
        """Parses the text where the cache does not know it.

        Raises:
            PtxSyntaxError: the text is not PTX, or is cut short.
        """
        self._text = text
        self.key = key_of(text)
        made = cache().fetch("module", key_of(cache_digest(), self.key), self._make_facts)
        facts: ModuleFacts = pickle.loads(made)
        self.entries = facts.entries
        self.variables = facts.variables
        self.pointers = facts.pointers

    def _make_facts(self) -> bytes:
        return pickle.dumps(ModuleFacts.of(self.module))

    @LazyProperty
    def module(self) -> Module:
        """The syntax tree."""
        return parse(self._text)


def _entry(module: Module, function: Function) -> Entry:
    parameters = tuple(
        Parameter(v.name, v.type, size_of(v), max(v.align, 1), v.is_pointer) for v in function.parameters
    )
    required = function.directives.get("reqntid")
    most = required or function.directives.get("maxntid")
    block = None if required is None else _three(required)
    cluster = function.directives.get("reqnctapercluster")
    threads = None
    if most is not None:
        threads = 1
        for extent in most:
            threads *= extent
    variables = tuple(v for f in reachable_functions(module, function) for v in f.variables)
    _, end, dynamic_start = lay_out_shared(module, replace(function, variables=variables))
    return Entry(
        function.name, parameters, block, threads, dynamic_start, end,
        required_cluster=None if cluster is None else _three(cluster),
        needs_cluster="explicitcluster" in function.directives,
    )  # fmt: skip


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


@lru_cache(maxsize=256)
def load(text: str) -> GpuModule:
    """The module of a PTX text.

    Raises:
        PtxSyntaxError: the text is not PTX, or is cut short.
    """
    return GpuModule(text)
