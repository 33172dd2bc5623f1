"""PTX text as launchers see it: its kernels and variables, kept in the cache; parsed where more of it is needed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from triptych.core.cache import cache, key_of
from triptych.core.collection import uncollected
from triptych.core.forks import LazyProperty
from triptych.gpu.flow import code_addresses, reachable_functions
from triptych.gpu.lower.analysis.variable_layout import lay_out_shared
from triptych.gpu.syntax import parse_lazily
from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.lazy_functions import headers_of
from triptych.gpu.syntax.variables import size_of
from triptych.native.cache_digest import cache_digest


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
    """What a launch needs to know of a module besides its kernels; kept in the cache."""

    kernels: tuple[str, ...]
    variables: tuple[Variable, ...]
    """Those in global and constant memory."""
    pointers: tuple[tuple[str, int], ...]
    """The functions whose addresses variables hold, with these addresses."""

    @classmethod
    def of(cls, module: Module) -> ModuleFacts:
        """From the syntax tree."""
        named = {symbol.name for variable in module.variables.values() for _, symbol in variable.references}
        headers = headers_of(module.functions).values()
        return cls(
            tuple(f.name for f in headers if f.is_entry and f.body is not None),
            tuple(v for v in module.variables.values() if v.space in ("global", "const")),
            tuple((name, address) for name, address in code_addresses(module).items() if name in named),
        )


class GpuModule:
    """A PTX module. Functions of its text are parsed where more of them is needed than the cache has."""

    def __init__(self, text: str) -> None:
        """Parses what stands outside of functions where the cache does not know it.

        Raises:
            PtxSyntaxError: that is not PTX, or the text is cut short.
        """
        self._text = text
        self.key = key_of(text)
        made = cache().fetch("module", key_of(cache_digest(), self.key), self._make_facts)
        facts: ModuleFacts = pickle.loads(made)
        self.entries: Mapping[str, Entry] = _Entries(self, facts.kernels)
        self.variables = facts.variables
        self.pointers = facts.pointers

    def _make_facts(self) -> bytes:
        with uncollected():
            return pickle.dumps(ModuleFacts.of(self.module))

    @LazyProperty
    def module(self) -> Module:
        """The syntax tree, of whose functions those are parsed that are asked for."""
        return parse_lazily(self._text)

    def require_valid(self) -> None:
        """Parses all of it where the cache does not know that this is possible.

        Raises:
            PtxSyntaxError: a function does not follow the grammar.
        """
        cache().fetch("valid", key_of(cache_digest(), self.key), self._check)

    def _check(self) -> bytes:
        return b"%d" % len([*self.module.functions.values()])


class _Entries(Mapping[str, Entry]):
    """A module's kernels by name, each found in the cache or taken from the text when it is asked for."""

    def __init__(self, owner: GpuModule, kernels: Sequence[str]) -> None:
        self._owner = owner
        self._kernels = dict.fromkeys(kernels)
        self._found: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        """The kernel of that name.

        Raises:
            KeyError: there is none.
            PtxSyntaxError: it does not follow the grammar.
        """
        found = self._found.get(name)
        if found is None:
            if name not in self._kernels:
                raise KeyError(name)
            made = cache().fetch("entry", key_of(cache_digest(), self._owner.key, name), lambda: self._make(name))
            found = self._found.setdefault(name, pickle.loads(made))
        return found

    def _make(self, name: str) -> bytes:
        module = self._owner.module
        return pickle.dumps(_entry(module, module.functions[name]))

    def __contains__(self, name: object) -> bool:
        """Whether there is a kernel of that name."""
        return name in self._kernels

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._kernels)

    def __len__(self) -> int:
        """Kernels."""
        return len(self._kernels)


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
        PtxSyntaxError: what stands outside of functions is not PTX, or the text is cut short; those of a function come
            when it is first asked for (`GpuModule.require_valid` looks at all).
    """
    return GpuModule(text)
