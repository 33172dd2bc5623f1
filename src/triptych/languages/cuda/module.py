"""A compiled CUDA source: kernels by name, templates instantiated when they are first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from triptych import gpu
from triptych.core.errors import CompileError, UnknownName
from triptych.core.languages import CUDA
from triptych.core.plan import Program
from triptych.execution.demangle import name_expression, readable, unqualified
from triptych.languages.calling import calling_location
from triptych.languages.cuda.compiling import compile_source, header_text
from triptych.languages.cuda.nvrtc import Compiled
from triptych.languages.cuda.signatures import Signatures, parameters_of, read_signatures, read_variables
from triptych.languages.cuda.source import Source
from triptych.languages.launcher import Kernel, no_attribute
from triptych.languages.variables import ModuleVariables


@dataclass(frozen=True, slots=True)
class _Unit:
    """One compiled translation unit with its kernels' PTX names by the author's."""

    program: Program
    compiled: Compiled

    @classmethod
    def of(cls, compiled: Compiled, target: str) -> _Unit:
        return cls(Program.of(CUDA, compiled.ptx, target), compiled)

    def entry_of(self, name: str) -> str | None:
        """The PTX name: by name expression, as it stands, or by the readable name where only one kernel has it."""
        entries = self.entries
        lowered = self.compiled.lowered.get(name)
        if lowered is not None:
            return lowered
        if name in entries:
            return name
        found = self.called(name) or [entry for entry in entries if _plain(name_expression(entry)) == _plain(name)]
        return found[0] if len(found) == 1 else None

    @property
    def entries(self) -> Sequence[str]:
        """The PTX names."""
        return tuple(gpu.load(self.program.text).entries)

    def called(self, name: str) -> list[str]:
        """The PTX names of all kernels of a readable name, with its namespaces or without."""
        wanted = _plain(name)
        return [one for one in self.entries if wanted in (_plain(readable(one)), _plain(unqualified(readable(one))))]

    def kernel(self, entry: str, signatures: Signatures) -> Kernel:
        """The kernel of a PTX name."""
        found = gpu.load(self.program.text).entries[entry]
        return Kernel(self.program, found, parameters_of(entry, len(found.parameters), signatures))


class CudaModule:
    """The kernels of one CUDA source, compiled for one target."""

    def __init__(self, source: Source, target: str, options: Sequence[str], names: Sequence[str] = ()) -> None:
        """Compiles at once; `names` are templates to instantiate in the same unit.

        Raises:
            CompileError: with the compiler's own log, at the line of the first error.
        """
        self.target = target
        self._source = source
        self._options = tuple(options)
        self._unit = _Unit.of(compile_source(source, target, self._options, names), target)
        headers = header_text(source, self._options)
        self._signatures = {**read_signatures(headers), **read_signatures(source.text)}
        declared = {**read_variables(headers), **read_variables(source.text)}
        self._variables = ModuleVariables(self._unit.program, declared)
        self._kernels: dict[str, Kernel] = {}

    @property
    def ptx(self) -> str:
        """The PTX of the source, without the templates that were asked for later."""
        return self._unit.program.text

    @property
    def log(self) -> str:
        """What the compiler said: its warnings."""
        return self._unit.compiled.log

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels that the source compiles by itself, each by a name that finds it: `vec_add`, `saxpy<float>`.

        Of several that share one it is the name expression: `(void(*)(int*))scale`.
        """
        entries = self._unit.entries
        shared = Counter(map(readable, entries))
        return tuple(readable(one) if shared[readable(one)] == 1 else name_expression(one) for one in entries)

    @property
    def variables(self) -> ModuleVariables:
        """The `__constant__` and `__device__` variables: `variables["c_Kernel"].copy_from(array)` before a launch.

        They keep what is stored in them from launch to launch; modules of the same source, target and options share
        them.
        """
        return self._variables

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of a name: `vec_add`, `ns::scale`, `saxpy<float>`, `ns::kernel<int, 4>`, or its name in the PTX.

        A template that the source does not instantiate itself is compiled then, in a unit of its own with its own
        `__device__` variables: what the host stores in `variables` reaches it, what kernels store does not. Name it in
        `compile(…, names=[…])` to have it share the module's.

        Raises:
            UnknownName: where no kernel has that name, or several have.
        """
        if name not in self._kernels:
            self._kernels[name] = self._find(name)
        return self._kernels[name]

    def _find(self, name: str) -> Kernel:
        entry = self._unit.entry_of(name)
        if entry is not None:
            return self._unit.kernel(entry, self._signatures)
        try:
            compiled = compile_source(self._source, self.target, self._options, [name])
        except CompileError as error:
            overloads = [name_expression(one) for one in self._unit.called(name)]
            if len(overloads) > 1:
                raise UnknownName(
                    f"kernel '{name}' is not one but {len(overloads)}", where=calling_location(),
                    hint=f"name one with its parameters: {' or '.join(overloads)}",
                ) from None  # fmt: skip
            unknown = UnknownName.of("kernel", name, self.names or ["none"], calling_location())
            unknown.hint = f"{unknown.hint}; as a name expression it does not compile: {_first_error(error)}"
            raise unknown from None
        unit = _Unit.of(compiled, self.target)
        self._variables.add(unit.program)
        return unit.kernel(compiled.lowered[name], self._signatures)

    def __getattr__(self, name: str) -> NoReturn:
        """Always an error: kernels are taken by subscript."""
        raise no_attribute(type(self).__name__, name, self.names if "_unit" in vars(self) else ())

    def __repr__(self) -> str:
        """The file and the kernels."""
        return f"<CUDA module {self._source.file}: {', '.join(self.names)}>"


def _plain(name: str) -> str:
    return "".join(name.split())


def _first_error(error: CompileError) -> str:
    """The compiler's first message, without the place in a text that the author never wrote."""
    lines = (line.partition("error: ")[2] for line in error.message.splitlines())
    return next(filter(None, lines), error.message)
