"""The table of engine instructions: what a row holds, and `@row`, which puts one next to its meaning.

    @row("max8", engines=_DVE, operands=(output("dst", free=8), tile("src", free=(8, 16384))), flow=Flow.PARTITION, …)
    def max8(operands, attributes):
        return {"dst": np.sort(widen(operands.flat("src")), axis=1)[:, :-9:-1]}

Everything that knows instructions reads the table: verification, execution, counting, the documentation's list, and
the author's function (`languages/nki/isa_functions/function.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import COMPILER
from triptych.core.dtypes import DType
from triptych.core.errors import NkiError, NkiLimitError
from triptych.core.launches import Finding
from triptych.neuron.isa.hardware import Engine, Hardware, Space
from triptych.neuron.isa.trace import AttributeValue, Instruction, Region, Tensor

ON_CHIP = frozenset({Space.SBUF, Space.PSUM})
SBUF = frozenset({Space.SBUF})
PSUM = frozenset({Space.PSUM})
ENGINE = frozenset({Space.ENGINE})

Attributes = Mapping[str, AttributeValue]
"""Values by name, as an instruction has them."""
Meaning = Callable[["Values", Attributes], Mapping[str, NDArray[Any]]]
"""Arrays of the inputs by operand name -> arrays of the outputs, which the machine rounds to their dtype and shape.

Masked elements of an output (`numpy.ma`) stay what they were.
"""


class Values:
    """The data of an instruction's operands: arrays shaped [partitions, …], immediates as float64 without axes."""

    __slots__ = ("_by_name", "_dtypes", "_real", "_shapes", "adds", "dst", "notes", "others", "program")

    def __init__(
        self,
        by_name: Mapping[str, NDArray[Any] | float],
        shapes: Mapping[str, tuple[int, ...]],
        dtypes: Mapping[str, DType],
        program: int = 0,
    ) -> None:
        """The inputs by name, and the shapes and the dtypes of all regions, of one program of the grid."""
        self._by_name = by_name
        self._shapes = shapes
        self._dtypes = dtypes
        self.program = program
        self.others: Sequence[Values] = ()
        """Of a meeting the values of all programs that take part, this one's too."""
        self.notes: list[str] = []
        """What a meaning saw: indices that are outside of a tile."""
        self.dst: NDArray[np.float32] | None = None
        """Where `dst` lies, if a row that works in place may write all of it; what did so gives this very array."""
        self.adds = False
        """Whether to add to what lies there (`Row.accumulates`)."""
        self._real: Values | None = None

    @property
    def real(self) -> Values:
        """The data themselves: where these are flags that say which elements are defined, what the flags are of."""
        return self if self._real is None else self._real

    def flag(self, real: Values) -> None:
        """These are flags of those data."""
        self._real = real

    def dtype(self, name: str) -> DType:
        """The dtype of an operand, an output too."""
        return self._dtypes[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an operand, an output too."""
        return self._shapes[name]

    def __contains__(self, name: str) -> bool:
        """Whether the operand was given."""
        return name in self._by_name

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The operand as it lies in memory; an immediate is an array without axes."""
        value = self._by_name[name]
        return value if isinstance(value, np.ndarray) else np.asarray(value, np.float64)

    def flat(self, name: str) -> NDArray[Any]:
        """The operand as [partitions, elements]; an immediate as it is."""
        value = self[name]
        return value.reshape(value.shape[0], -1) if value.ndim else value


class Flow(Enum):
    """Which elements of the inputs an element of the output depends on; undefined data spreads along it."""

    ELEMENTWISE = (
        "the same element of each input, or all that were reduced into it; a [P, 1] operand's of its partition"
    )
    PREFIX = "the same element and those before it in its partition"
    PARTITION = "all elements of its partition"
    COLUMN = "the elements in its place of all partitions"
    CONTRACTION = "a column of the stationary and a column of the moving operand"
    MOVEMENT = "the one that the meaning moves there"
    SELECTION = "the one that is selected, and what selects it; of a reduction all that were reduced"
    CONSTANT = "none"


class Effect(Enum):
    """What executors do for an instruction besides its meaning."""

    COMPUTE = 0
    """Nothing: the meaning is all."""
    BEGIN_COUNTED = 1
    """Begins a loop over an index; the executor keeps the index within the bounds."""
    BEGIN_WHILE = 2
    """Begins a loop that lasts while a register is not 0."""
    END = 3
    """Ends the innermost loop."""
    PRINT = 4
    """Writes an operand to the output of the launch."""
    MEET = 5
    """Waits for the same instruction of other programs; the meaning sees the values of all of them."""


class Cost(Enum):
    """Classes of execution time, with the cycles of the executing engine; N is the free size, P the partitions.

    Source: the cost tables of the NKI reference of SDK 2.26, the last that had them.
    """

    ELEMENTWISE = "max(64, N)"
    TWO_INPUTS = "max(64, 2 N)"
    REDUCTION = "N"
    ACTIVATION = "max(64, N)"
    ACTIVATION_REDUCTION = "max(64, N) + 64"
    RECIPROCAL = "max(64, 8 N)"
    SCAN = "max(64, 2 N), one element after the other"
    AGGREGATION = "max(64, 13 N / 3)"
    MATMUL = "max(min(64, M), N), 4 times that for float32"
    TRANSPOSE = "max(P, min(64, N))"
    SEARCH = "4 N + K"
    CONTROL = "the engines' sequencers: none of the pipelines"
    GPSIMD = "150 + N"
    UNPUBLISHED = "not published"
    DMA = "start-up and bytes over the DMA engines' bandwidth"


@dataclass(frozen=True, slots=True)
class OperandRule:
    """One operand of a row: where it may lie, what it may be, and how it is used."""

    name: str
    spaces: frozenset[Space]
    written: bool = False
    read: bool = True
    optional: bool = False
    immediate: bool = False
    """Whether a number may stand in for a tile."""
    dtypes: tuple[str, ...] = ()
    """The dtypes that it may have; none named: all."""
    free: tuple[int, int] | None = None
    """The least and the most elements of a partition."""
    any_start: bool = False
    """Whether it may begin at any partition, whatever the engine asks of others."""
    selects: bool = False
    """Whether its values decide which elements of the other operands are taken (`Flow.SELECTION`)."""

    @property
    def state(self) -> bool:
        """Whether it stands for registers of the engine, which no author names."""
        return self.spaces == ENGINE and self.written and self.optional

    @property
    def fixed(self) -> bool:
        """Whether the row says how many elements a partition of it has, whatever the other operands have."""
        return self.free is not None and self.free[0] == self.free[1]


Free = int | tuple[int, int] | None


def _range(free: Free) -> tuple[int, int] | None:
    return (free, free) if isinstance(free, int) else free


def output(
    name: str,
    spaces: frozenset[Space] = ON_CHIP,
    *,
    optional: bool = False,
    dtypes: tuple[str, ...] = (),
    free: Free = None,
) -> OperandRule:
    """An operand that is written; `free` elements a partition, or (least, most)."""
    return OperandRule(name, spaces, True, False, optional, False, dtypes, _range(free))


def updated(
    name: str, spaces: frozenset[Space] = ON_CHIP, *, dtypes: tuple[str, ...] = (), any_start: bool = False
) -> OperandRule:
    """An operand that is read and written."""
    return OperandRule(name, spaces, written=True, dtypes=dtypes, any_start=any_start)


def tile(
    name: str,
    spaces: frozenset[Space] = ON_CHIP,
    *,
    dtypes: tuple[str, ...] = (),
    free: Free = None,
    selects: bool = False,
    any_start: bool = False,
) -> OperandRule:
    """An operand that is read; `free` elements a partition, or (least, most)."""
    return OperandRule(name, spaces, dtypes=dtypes, free=_range(free), selects=selects, any_start=any_start)


def optional_tile(name: str, spaces: frozenset[Space] = ON_CHIP) -> OperandRule:
    """An operand that is read where it is given."""
    return OperandRule(name, spaces, optional=True)


def named(name: str, spaces: frozenset[Space]) -> OperandRule:
    """An operand of which nothing is read or written: the instruction is about it."""
    return OperandRule(name, spaces, read=False)


def number(name: str, *, optional: bool = False) -> OperandRule:
    """An input that is an immediate number, never a tile."""
    return OperandRule(name, frozenset(), optional=optional, immediate=True)


def tile_or_number(name: str, *, optional: bool = False, spaces: frozenset[Space] = ON_CHIP) -> OperandRule:
    """An input that may be an immediate number."""
    return OperandRule(name, spaces, optional=optional, immediate=True)


def state(name: str, free: Free = 1) -> OperandRule:
    """Registers of the engine that the instruction reads and leaves changed, of all its lanes that take part."""
    return OperandRule(name, ENGINE, written=True, optional=True, free=_range(free))


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """One attribute of a row: what its values are."""

    kind: type
    default: AttributeValue = None
    """What it is where the author leaves it away; None, unless it is optional: it must be given."""
    optional: bool = False
    """Whether it may be None."""


def optional(kind: type) -> AttributeRule:
    """An attribute that may be None, and is where the author leaves it away."""
    return AttributeRule(kind, optional=True)


def _attribute_rule(column: AttributeValue | AttributeRule) -> AttributeRule:
    """The rule of an attribute of which a row gives a default, or None for a name that must be given."""
    if isinstance(column, AttributeRule):
        return column
    return AttributeRule(str if column is None else type(column), column)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What verification knows of the trace that an instruction is part of; it may be in the making."""

    tensors: Sequence[Tensor]
    hardware: Hardware
    generation: str
    """Of the language: BETA1 or CURRENT."""
    grid: tuple[int, ...] = (1,)
    arguments: Collection[int] = ()
    """The tensors that the launch binds."""

    def seen_by_all(self, tensor: int) -> bool:
        """Whether all programs of the grid see a tensor, or what it views: the launch binds it, or it is shared."""
        alias = self.tensors[tensor].alias
        root = tensor if alias is None else alias
        return root in self.arguments or self.tensors[root].shared


@dataclass(frozen=True, slots=True)
class Subject:
    """An instruction under verification, with what the checks need to know about it."""

    instruction: Instruction
    row: Row
    surroundings: Surroundings
    notices: list[Finding] | None = None
    """Collects what AWS's compiler refuses and its simulator does not; None: that is refused here too."""
    splits: bool = False
    """Whether the language splits instructions of more axes than the engines walk."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """Those of the trace."""
        return self.surroundings.tensors

    @property
    def hardware(self) -> Hardware:
        """The limits of the target."""
        return self.surroundings.hardware

    @property
    def generation(self) -> str:
        """Of the language: BETA1 or CURRENT."""
        return self.surroundings.generation

    def breach(self, error: NkiError) -> None:
        """A rule of AWS's compiler that the data could be computed without.

        Raises:
            NkiError: the error, unless the trace is lenient: then it is a finding.
        """
        if self.notices is None:
            raise error
        self.notices.append(Finding.of(COMPILER, error.message, self.instruction.where))

    def region(self, name: str) -> Region | None:
        """The operand, None where it is an immediate or absent."""
        operand = self.instruction.operands.get(name)
        return operand if isinstance(operand, Region) else None

    def tensor(self, name: str) -> Tensor:
        """The tensor that the operand (a region) views."""
        return self.tensors[self.instruction.region(name).tensor]

    def seen_by_all(self, name: str) -> bool:
        """Whether all programs of the grid see the tensor of the operand (a region)."""
        return self.surroundings.seen_by_all(self.instruction.region(name).tensor)

    def describe(self, name: str) -> str:
        """The operand and its tensor, for messages."""
        return f"operand '{name}' (tensor `{self.tensor(name).name}`)"

    def refuse(self, message: str, hint: str | None = None) -> NkiError:
        """The error of a rule that is no limit of size or place."""
        return NkiError(f"{self.row.name}: {message}", where=self.instruction.where, hint=hint)

    def exceed(self, message: str, hint: str | None = None) -> NkiLimitError:
        """The error of a limit of the hardware."""
        return NkiLimitError(f"{self.row.name}: {message}", where=self.instruction.where, hint=hint)


Check = Callable[[Subject], None]
FloatingWork = Callable[[Subject], int]


def no_work(subject: Subject) -> int:
    """No FLOPs."""
    del subject
    return 0


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction: `source` says where AWS documents it."""

    name: str
    engines: tuple[Engine, ...]
    """Those that execute it; the first is the default."""
    operands: tuple[OperandRule, ...]
    meaning: Meaning
    flow: Flow
    cost: Cost
    source: str
    attributes: Mapping[str, AttributeRule]
    checks: tuple[Check, ...]
    flops: FloatingWork
    accumulates: bool
    """Whether the output may be added to what a matmul left in PSUM."""
    core_generation: int
    """The first generation of NeuronCore that has it."""
    effect: Effect
    moves_bits: bool
    """Whether its operands may be packed (x4): they are moved as they are, between tensors of one dtype."""
    in_place: bool
    """Whether its meaning can put a float32 result where `dst` lies (`Values.dst`), or add it there."""

    def rule(self, name: str) -> OperandRule | None:
        """The rule of an operand."""
        return next((rule for rule in self.operands if rule.name == name), None)


ROWS: dict[str, Row] = {}
"""All rows by name."""


def row(
    name: str,
    *,
    engines: tuple[Engine, ...],
    operands: tuple[OperandRule, ...],
    flow: Flow = Flow.ELEMENTWISE,
    cost: Cost = Cost.ELEMENTWISE,
    source: str | None = None,
    attributes: Mapping[str, AttributeValue | AttributeRule] | None = None,
    checks: tuple[Check, ...] = (),
    flops: FloatingWork = no_work,
    accumulates: bool = False,
    core_generation: int = 2,
    effect: Effect = Effect.COMPUTE,
    moves_bits: bool = False,
    in_place: bool = False,
) -> Callable[[Meaning], Meaning]:
    """Put a row into the table; the decorated function is its meaning.

    An attribute is a default, of whose type its values are, None for a name that must be given, or `optional(…)`.
    `source` is `nki.isa.<name>` unless given.
    """

    def register(meaning: Meaning) -> Meaning:
        assert name not in ROWS, f"two rows of the name {name}"
        ROWS[name] = Row(
            name=name,
            engines=engines,
            operands=operands,
            meaning=meaning,
            flow=flow,
            cost=cost,
            source=source or f"nki.isa.{name}",
            attributes={name: _attribute_rule(column) for name, column in (attributes or {}).items()},
            checks=checks,
            flops=flops,
            accumulates=accumulates,
            core_generation=core_generation,
            effect=effect,
            moves_bits=moves_bits,
            in_place=in_place,
        )
        return meaning

    return register
