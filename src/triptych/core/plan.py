"""The Plan: what an author's code asks a machine to do, without data. Serialisable and content-addressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triptych.core.arrays import Handle, Storage
from triptych.core.dtypes import DType

CONSTANT_LIMIT = 1 << 20
"""Bytes. The most host data that one `Constant` may bring into a plan."""


@dataclass(frozen=True, slots=True)
class Program:
    """Something that a machine runs: `machine` is `gpu` (the text is PTX) or `neuron` (an instruction trace)."""

    machine: str
    text: str
    language: str
    """What the author wrote it in: `cuda`, `triton`, `nki` or `ptx`. A claim, never a fact to rely on."""
    target: str
    """The compile target (`sm_80`, `trn2`)."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar argument, already converted to the parameter's type."""

    dtype: DType
    value: int | float


@dataclass(frozen=True, slots=True)
class Block:
    """An argument passed by value as raw bytes (a struct)."""

    data: bytes


Argument = Handle | Scalar | Block


@dataclass(frozen=True, slots=True)
class Allocate:
    """A new storage with undefined contents."""

    storage: Storage


@dataclass(frozen=True, slots=True)
class Fill:
    """Every element of `target` becomes `value`."""

    target: Handle
    value: int | float


@dataclass(frozen=True, slots=True)
class Copy:
    """The elements of `source` go to `target`: same shape, same dtype."""

    target: Handle
    source: Handle


@dataclass(frozen=True, slots=True)
class Constant:
    """A new storage whose contents the host computed during capture (at most `CONSTANT_LIMIT` bytes)."""

    storage: Storage
    data: bytes


@dataclass(frozen=True, slots=True)
class Launch:
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


@dataclass(frozen=True, slots=True)
class Choose:
    """Alternatives of one result (an autotuner's configurations); the executing side picks by modelled time."""

    labels: tuple[str, ...]
    alternatives: tuple[Plan, ...]


Node = Allocate | Fill | Copy | Constant | Launch | Choose


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in their order, the programs that they launch, and which handles are the inputs and the outputs."""

    nodes: tuple[Node, ...]
    programs: Mapping[str, Program] = field(default_factory=dict[str, Program])
    inputs: tuple[Handle, ...] = ()
    outputs: tuple[Handle, ...] = ()

    @classmethod
    def of_launch(cls, program: Program, launch: Launch) -> Plan:
        """The plan of one launch over arrays that exist: what interactive use runs, a plan at a time."""
        handles = dict.fromkeys(argument for argument in launch.arguments if isinstance(argument, Handle))
        written = (handle for handle in handles if handle.storage.writable)
        return cls((launch,), {launch.program: program}, tuple(handles), tuple(written))
