"""The Plan: what an author's code asks a machine to do, without data. Serialisable and content-addressed.

A kind of node is a class here, and a line of `Node`: it says which handles it names, which storages it makes, and what
would be wrong with it. `encode` and `decode` write and read it by the annotations of its fields, and
`execution/nodes.py` executes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import get_args, get_type_hints

from triptych.core.dtypes import DType
from triptych.core.handles import Handle, Storage
from triptych.core.identity import kept_by_identity
from triptych.core.languages import Language

POINTER_BYTES = 8
CONSTANT_LIMIT = 1 << 20
"""Bytes. The most host data that one `Constant` may bring into a plan."""


@dataclass(frozen=True, slots=True)
class Program:
    """Something that a machine runs: `machine` is `gpu` (the text is PTX) or `neuron` (an instruction trace)."""

    machine: str
    text: str
    language: str
    """The name of the language (`core/languages.py`) that the author wrote it in. A claim, never a fact to rely on."""
    target: str
    """The compile target (`sm_80`, `trn2`)."""

    @classmethod
    def of(cls, language: Language, text: str, target: str) -> Program:
        """A program of a language, for the machine that it runs on."""
        return cls(language.machine, text, language.name, target)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar argument, already converted to the parameter's type."""

    dtype: DType
    value: int | float


@dataclass(frozen=True, slots=True)
class Struct:
    """An argument passed by value as raw bytes."""

    data: bytes
    pointers: tuple[tuple[int, Handle], ...] = ()
    """Where in it addresses of arrays stand, 8 bytes each, whatever `data` has there: those of tensor maps."""

    @property
    def packed(self) -> bytes:
        """What a device sees of it."""
        whole = bytearray(self.data)
        for offset, handle in self.pointers:
            whole[offset : offset + POINTER_BYTES] = handle.data_ptr().to_bytes(POINTER_BYTES, "little")
        return bytes(whole)


Argument = Handle | Scalar | Struct


def handles_in(argument: Argument) -> tuple[Handle, ...]:
    """The arrays that an argument names."""
    if isinstance(argument, Handle):
        return (argument,)
    return tuple(handle for _, handle in argument.pointers) if isinstance(argument, Struct) else ()


def bytes_of(argument: Argument) -> bytes:
    """What a device sees of an argument: an array's address, a number's bytes."""
    if isinstance(argument, Handle):
        return argument.data_ptr().to_bytes(POINTER_BYTES, "little")
    return argument.packed if isinstance(argument, Struct) else argument.dtype.pack(argument.value)


class NodeKind(ABC):
    """What all kinds of nodes say of themselves."""

    __slots__ = ()

    @property
    @abstractmethod
    def handles(self) -> tuple[Handle, ...]:
        """The handles that it names itself, not those of plans inside it."""

    @property
    @abstractmethod
    def makes(self) -> tuple[Storage, ...]:
        """The storages that it makes itself; all others must be there before it."""

    @property
    def called(self) -> tuple[tuple[Handle, str], ...]:
        """What the author calls those of its handles that have a name. A claim, for names of storages."""
        return ()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans inside it."""
        return ()

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """What is wrong with it, but for its handles, which must lie in their storages; `programs` are those known."""
        del programs
        return iter(())


@dataclass(frozen=True, slots=True)
class Allocate(NodeKind):
    """A new storage with undefined contents."""

    storage: Storage

    @property
    def handles(self) -> tuple[Handle, ...]:
        """None."""
        return ()

    @property
    def makes(self) -> tuple[Storage, ...]:
        """The storage."""
        return (self.storage,)


@dataclass(frozen=True, slots=True)
class Fill(NodeKind):
    """Every element of `target` becomes `value`."""

    target: Handle
    value: int | float

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The target."""
        return (self.target,)

    @property
    def makes(self) -> tuple[Storage, ...]:
        """None."""
        return ()

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """The target must be one that can be written, and have the value."""
        yield from _unwritable(self.target)
        if not self.target.dtype.holds(self.value):
            yield f"fill of '{self.target.storage.name}': {self.value} is no {self.target.dtype}"


@dataclass(frozen=True, slots=True)
class Copy(NodeKind):
    """The elements of `source` go to `target`: same shape, same dtype."""

    target: Handle
    source: Handle

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Target and source."""
        return self.target, self.source

    @property
    def makes(self) -> tuple[Storage, ...]:
        """None."""
        return ()

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """The target must be one that can be written, and like the source."""
        yield from _unwritable(self.target)
        target, source = self.target, self.source
        if target.shape != source.shape or target.dtype != source.dtype:
            yield (
                f"from {source.dtype} {source.shape} to {target.dtype} {target.shape};"
                " expected the same dtype and shape"
            )


@dataclass(frozen=True, slots=True)
class Constant(NodeKind):
    """A new storage whose contents the host computed during capture (at most `CONSTANT_LIMIT` bytes)."""

    storage: Storage
    data: bytes

    @property
    def handles(self) -> tuple[Handle, ...]:
        """None."""
        return ()

    @property
    def makes(self) -> tuple[Storage, ...]:
        """The storage."""
        return (self.storage,)

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """The bytes must be the storage's, and few."""
        if len(self.data) != self.storage.size:
            yield f"{len(self.data)} bytes for a storage of {self.storage.size}"
        yield from _too_many(len(self.data))


@dataclass(frozen=True, slots=True)
class SetVariable(NodeKind):
    """The host stores `values`, one behind the other, into a variable of a program (at most `CONSTANT_LIMIT` bytes).

    A handle among them is the array's address: a pointer.
    """

    program: str
    """The program's name in the plan."""
    variable: str
    """As the program's text has it: of C++, the mangled name."""
    offset: int
    """Bytes from where the variable begins."""
    values: tuple[Argument, ...]

    @property
    def size(self) -> int:
        """Bytes of the values."""
        return len(b"".join(map(bytes_of, self.values)))

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Those that it makes pointers to."""
        return tuple(handle for value in self.values for handle in handles_in(value))

    @property
    def called(self) -> tuple[tuple[Handle, str], ...]:
        """What it points to, as the variable is called."""
        return tuple((handle, self.variable) for handle in self.handles)

    @property
    def makes(self) -> tuple[Storage, ...]:
        """None."""
        return ()

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """The program must be known, the offset not negative, the bytes few, and a scalar a value of its type."""
        yield from _unknown(self.program, programs)
        if self.offset < 0:
            yield f"variable '{self.variable}': offset {self.offset}"
        for value in self.values:
            yield from _no_value(value, f"variable '{self.variable}'")
        yield from _too_many(self.size)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """How a kernel is launched: what a launch says beside the kernel and its arguments."""

    grid: tuple[int, int, int]
    """Blocks along x, y and z."""
    block: tuple[int, int, int] = (1, 1, 1)
    """Threads of a block along x, y and z."""
    shared_bytes: int = 0
    """Dynamic shared memory of each block."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks of a cluster along x, y and z."""
    cooperative: bool = False
    """Whether all blocks must be resident at once, for grid-wide barriers."""


@dataclass(frozen=True, slots=True)
class Launch(NodeKind):
    """One kernel over one grid."""

    program: str
    """The program's name in the plan."""
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0
    """Dynamic shared memory of each block."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False
    names: tuple[str, ...] = ()
    """What the author calls the arguments, in their order; none where that is not known. A claim, for messages."""

    @property
    def shape(self) -> LaunchShape:
        """Its extents and what else it says of its blocks, as records of it have them."""
        return _shape_of(self)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Those among the arguments, and in them."""
        return tuple(handle for argument in self.arguments for handle in handles_in(argument))

    @property
    def called(self) -> tuple[tuple[Handle, str], ...]:
        """Those among the arguments that have a name."""
        pairs = zip(self.arguments, self.names, strict=False)
        return tuple((handle, name) for argument, name in pairs for handle in handles_in(argument))

    @property
    def makes(self) -> tuple[Storage, ...]:
        """None."""
        return ()

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """The program must be known, every extent at least 1, and a scalar a value of its type."""
        yield from _unknown(self.program, programs)
        for label, extents in (("grid", self.grid), ("block", self.block), ("cluster", self.cluster)):
            if len(extents) != 3 or min(extents) < 1:
                yield f"{label} {extents}; expected three whole numbers of 1 or more"
        if self.shared_bytes < 0:
            yield f"{self.shared_bytes} bytes of shared memory"
        for position, argument in enumerate(self.arguments):
            yield from _no_value(argument, f"argument {position}")


@kept_by_identity(64)
def _shape_of(launch: Launch) -> LaunchShape:
    return LaunchShape(launch.grid, launch.block, launch.shared_bytes, launch.cluster, launch.cooperative)


@dataclass(frozen=True, slots=True)
class Choose(NodeKind):
    """Alternatives of one result (an autotuner's configurations); the executing side picks by modelled time."""

    labels: tuple[str, ...]
    alternatives: tuple[Plan, ...]

    @property
    def handles(self) -> tuple[Handle, ...]:
        """None itself."""
        return ()

    @property
    def makes(self) -> tuple[Storage, ...]:
        """None itself."""
        return ()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The alternatives."""
        return self.alternatives

    def mistakes(self, programs: frozenset[str]) -> Iterator[str]:
        """There must be alternatives, each with a label of its own."""
        if not self.alternatives or len(self.labels) != len(self.alternatives):
            yield f"{len(self.labels)} labels for {len(self.alternatives)} alternatives"
        for label, count in Counter(self.labels).items():
            if count > 1:
                yield f"{count} alternatives are called '{label}'"


def _unknown(program: str, programs: frozenset[str]) -> Iterator[str]:
    if program not in programs:
        yield f"no program '{program}'; the plan has: {', '.join(sorted(programs)) or 'none'}"


def _no_value(argument: Argument, owner: str) -> Iterator[str]:
    if isinstance(argument, Scalar) and not argument.dtype.holds(argument.value):
        yield f"{owner}: {argument.value} is no {argument.dtype}"
    if isinstance(argument, Struct):
        for offset, _ in argument.pointers:
            if not 0 <= offset <= len(argument.data) - POINTER_BYTES:
                yield f"{owner}: a pointer at byte {offset} of {len(argument.data)}"


def _too_many(size: int) -> Iterator[str]:
    if size > CONSTANT_LIMIT:
        most = f"at most {CONSTANT_LIMIT} may come from the host: compute the values in a kernel"
        yield f"{size} bytes of host data; {most}"


def _unwritable(target: Handle) -> Iterator[str]:
    if not target.storage.writable:
        yield f"storage '{target.storage.name}' is read-only"
    if target.nbytes > target.storage.size:
        yield f"the target has {target.nbytes} bytes of elements, its storage '{target.storage.name}' has fewer"


Node = Allocate | Fill | Copy | Constant | SetVariable | Launch | Choose

NODES: Mapping[str, type[Node]] = {kind.__name__.lower(): kind for kind in get_args(Node)}
"""The kinds by their names in a plan's JSON and in messages."""


@cache
def fields_of(kind: type[Node]) -> Mapping[str, object]:
    """The types of a kind's fields by name, in their order."""
    types = get_type_hints(kind)
    return {one.name: types[one.name] for one in fields(kind)}


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in their order, the programs that they launch, and which handles are the inputs and the outputs."""

    nodes: tuple[Node, ...]
    programs: Mapping[str, Program] = field(default_factory=dict[str, Program])
    inputs: tuple[Handle, ...] = ()
    outputs: tuple[Handle, ...] = ()

    @classmethod
    def of_launch(cls, program: Program, launch: Launch, before: tuple[SetVariable, ...] = ()) -> Plan:
        """The plan of one launch over arrays that exist: what interactive use runs, a plan at a time.

        `before` is what the host stores in variables of the launch's program first.
        """
        nodes = (*before, launch)
        handles = tuple(dict.fromkeys(handle for node in (launch, *before) for handle in node.handles))
        written = (handle for handle in handles if handle.storage.writable)
        return cls(nodes, {launch.program: program}, handles, tuple(written))

    @property
    def made(self) -> frozenset[Storage]:
        """The storages that it makes itself, those of plans inside it included."""
        inside = (plan.made for node in self.nodes for plan in node.plans)
        return frozenset(storage for node in self.nodes for storage in node.makes).union(*inside)
