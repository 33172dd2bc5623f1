"""The table of engine instructions: what a row holds, and `@row`, which puts one next to its meaning.

    @row("reciprocal", engines=(Engine.VECTOR,), operands=(output("dst"), tile("data")), flow=Flow.ELEMENTWISE, …)
    def reciprocal(operands, attributes):
        return {"dst": 1 / widen(operands["data"])}

Everything that knows instructions reads the table: verification, execution, counting, the documentation's list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import NkiError, NkiLimitError
from triptych.neuron.isa.hardware import Engine, Hardware, Space
from triptych.neuron.isa.trace import AttributeValue, Instruction, Region, Tensor

ON_CHIP = frozenset({Space.SBUF, Space.PSUM})
SBUF = frozenset({Space.SBUF})
PSUM = frozenset({Space.PSUM})

Attributes = Mapping[str, AttributeValue]
Meaning = Callable[["Values", Attributes], Mapping[str, NDArray[Any]]]
"""Arrays of the inputs by operand name -> arrays of the outputs, which the machine rounds to their dtype and shape."""


class Values:
    """The data of an instruction's operands: arrays shaped [partitions, …], immediates as float64 without axes."""

    __slots__ = ("_by_name", "_shapes")

    def __init__(self, by_name: Mapping[str, NDArray[Any] | float], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """The inputs by name, and the shapes of all regions."""
        self._by_name = by_name
        self._shapes = shapes

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
    """Which elements of the inputs an element of the output depends on."""

    ELEMENTWISE = "the same element of each input; operands of one element a partition count for the partition"
    REDUCTION = "all elements of its partition that were reduced into it"
    CONTRACTION = "a column of the stationary and a column of the moving operand"
    TRANSPOSITION = "the mirrored element"
    CONSTANT = "none"


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
    MATMUL = "max(min(64, M), N), 4 times that for float32"
    TRANSPOSE = "max(P, min(64, N))"
    GPSIMD = "150 + N"
    DMA = "start-up and bytes over the DMA engines' bandwidth"


@dataclass(frozen=True, slots=True)
class OperandRule:
    """One operand of a row: where it may lie and how it is used."""

    name: str
    spaces: frozenset[Space]
    written: bool = False
    read: bool = True
    optional: bool = False
    immediate: bool = False
    """Whether a number may stand in for a tile."""


def output(name: str, spaces: frozenset[Space] = ON_CHIP) -> OperandRule:
    """An operand that is written."""
    return OperandRule(name, spaces, written=True, read=False)


def updated(name: str, spaces: frozenset[Space] = ON_CHIP) -> OperandRule:
    """An operand that is read and written."""
    return OperandRule(name, spaces, written=True)


def tile(name: str, spaces: frozenset[Space] = ON_CHIP) -> OperandRule:
    """An operand that is read."""
    return OperandRule(name, spaces)


def tile_or_number(name: str, *, optional: bool = False) -> OperandRule:
    """An input that may be an immediate number."""
    return OperandRule(name, ON_CHIP, optional=optional, immediate=True)


@dataclass(frozen=True, slots=True)
class Subject:
    """An instruction under verification, with what the checks need to know about it."""

    instruction: Instruction
    row: Row
    tensors: Sequence[Tensor]
    hardware: Hardware
    generation: str

    def region(self, name: str) -> Region | None:
        """The operand, None where it is an immediate or absent."""
        operand = self.instruction.operands.get(name)
        return operand if isinstance(operand, Region) else None

    def tensor(self, name: str) -> Tensor:
        """The tensor that the operand (a region) views."""
        return self.tensors[self.instruction.region(name).tensor]

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


def _no_work(subject: Subject) -> int:
    del subject
    return 0


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction: `source` says where AWS documents it."""

    name: str
    engines: tuple[Engine, ...]
    """Those that execute it; the first is the default."""
    operands: tuple[OperandRule, ...]
    flow: Flow
    cost: Cost
    meaning: Meaning
    source: str
    attributes: Attributes = field(default_factory=dict[str, AttributeValue])
    """Names and defaults."""
    checks: tuple[Check, ...] = ()
    flops: FloatingWork = _no_work
    accumulates: bool = False
    """Whether the output may be added to what a matmul left in PSUM."""

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
    flow: Flow,
    cost: Cost,
    source: str,
    attributes: Attributes | None = None,
    checks: tuple[Check, ...] = (),
    flops: FloatingWork = _no_work,
    accumulates: bool = False,
) -> Callable[[Meaning], Meaning]:
    """Put a row into the table; the decorated function is its meaning."""

    def register(meaning: Meaning) -> Meaning:
        assert name not in ROWS, f"two rows of the name {name}"
        ROWS[name] = Row(
            name, engines, operands, flow, cost, meaning, source, attributes or {}, checks, flops, accumulates
        )
        return meaning

    return register
