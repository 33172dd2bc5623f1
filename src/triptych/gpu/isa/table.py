"""The instruction table's machinery: a row is the manual's syntax line plus its meaning.

A syntax line reads like the manual's: `add{.ftz}{.sat}.f32 d, a, b`. In the opcode, braces mean optional, a name that
`groups` lists stands for one of its alternatives, a type or a name that `types` lists stands for a type; any other
name stands for itself. Modifiers other than types match in any order, as `ptxas` takes them. In the operands, `d:pred`
gives an operand's own type where it is not the instruction's: a type, a slot's name, or `wide` for twice the width;
`[a]` is an address, `d*` may be a vector of elements `{a, b}`, `d#` may be given as the parts `{a, b}` of one value,
`d|p:pred` is a pair of which the second may be missing, `c?` may be missing altogether. An operand that begins with `%`
is implied: a register that the text does not write, such as the carry flag `%cc.cf`. A last operand that is called
`membermask` names the lanes that take part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from triptych.core.memory_access import Access
from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.spaces import BY_MODIFIER, Space
from triptych.gpu.isa.types import TYPES, WIDENED, ScalarType, packed_element


class Pipe(Enum):
    """The unit that executes an instruction: the classes by which instructions are counted and costed."""

    INTEGER = "int"
    FP32 = "fp32"
    FP64 = "fp64"
    FP16 = "fp16"
    SPECIAL = "special"
    CONVERT = "convert"
    MOVE = "move"
    LOAD_STORE = "load_store"
    WARP = "warp"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class OperandSlot:
    """One operand of a syntax line."""

    name: str
    type: str
    """A type's name, a slot's name (`type`, `dtype` …) or `wide`."""
    is_destination: bool = False
    is_address: bool = False
    may_be_vector: bool = False
    """Whether it may be a vector of elements, each of the operand's type."""
    may_be_packed: bool = False
    """Whether it may be a vector of parts that make up the operand's type together."""
    optional: bool = False
    paired: bool = False
    """The second half of `d|p`; it may be missing."""
    implied: bool = False
    """A register that the text does not write; `name` is its name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction form."""

    syntax: str
    summary: str
    section: str
    """Of the PTX ISA manual."""
    pipe: Pipe
    effect: Effect
    flops: int
    """Floating-point operations of one lane, for each number of the first type (`f16x2` is two); 0 for the rest."""
    flop_pipe: str
    """The pipe whose FLOPs they are (`tensor.f16`), as chips and counters call it; empty: that of the first type."""
    meaning: Callable[..., Any]
    """(machine, form, *sources) -> destination, destinations or None."""
    mnemonic: str
    literals: frozenset[str]
    groups: Mapping[str, tuple[frozenset[str], bool]]
    """By name: the alternatives, and whether one of them must be there."""
    type_slots: tuple[tuple[str, frozenset[str]], ...]
    operands: tuple[OperandSlot, ...]
    counts: str | None
    """The counter that each execution by a warp adds 1 to, beside those that every instruction counts into."""
    shuffles: bool
    """Whether the meaning moves values between lanes (`Machine.shuffle`, `Machine.exchange`)."""
    rounds: str
    """The operation that the meaning asks of `Machine.float_directed` where the text rounds other than to nearest."""
    wider_registers: bool
    """Whether registers may be wider than the type (PTX manual, 9.4.1)."""
    takes_symbols: bool
    """Whether a source may be the address of a variable."""
    observes: Observation
    """What its results tell of what other threads write."""
    operation: str
    """The atomic operation, where no group of the opcode names it."""
    aligned: bool
    """Whether all threads of a warp come to it together, without a modifier that says so."""
    converts_addresses: bool
    """Whether it makes a generic address of one of a space, or the other way round."""
    names_blocks: bool
    """Whether what it gives may be an address of another block's shared memory."""

    @property
    def has_membermask(self) -> bool:
        """Whether its last operand names the lanes that take part."""
        return bool(self.operands) and self.operands[-1].name == "membermask"

    @property
    def types(self) -> str:
        """The types of each slot, for listings."""
        return "; ".join(" ".join(sorted(kinds)) for _, kinds in self.type_slots)


_COMMUTING = frozenset(("min", "max", "and", "or", "xor", "inc", "dec"))


@dataclass(frozen=True, slots=True)
class Form:
    """A row chosen for an opcode: the types and the modifiers that the text gave."""

    row: Row
    types: Mapping[str, ScalarType]
    chosen: Mapping[str, str]
    modifiers: frozenset[str] = field(default_factory=frozenset[str])
    immediates: tuple[int, ...] = ()
    """The integer literals among an instruction's operands, in order; filled in by the executors."""
    in_clusters: bool = False
    """Whether its kernel makes addresses of other blocks' shared memory; filled in by the executors."""

    @property
    def type(self) -> ScalarType:
        """The first type."""
        return next(iter(self.types.values()))

    @property
    def flops(self) -> int:
        """Floating-point operations of one lane."""
        return self.row.flops * (self.type.bits // packed_element(self.type).bits) if self.row.flops else 0

    @property
    def flop_counter(self) -> str:
        """The counter that they go to."""
        return f"flops.{self.row.flop_pipe or packed_element(self.type).name}"

    def has(self, modifier: str) -> bool:
        """Whether the text has the modifier."""
        return modifier in self.modifiers

    def get(self, group: str, default: str = "") -> str:
        """The alternative chosen of a group."""
        return self.chosen.get(group, default)

    @property
    def space(self) -> Space:
        """The state space that the opcode names."""
        named = BY_MODIFIER[self.get("space")]
        return named.in_clusters if self.in_clusters and named.in_clusters is not None else named

    @property
    def accesses(self) -> tuple[tuple[Space, Access], ...]:
        """The accesses to memory of an execution: in which space, and what they do there."""
        return tuple((space or self.space, kind) for space, kind in self.row.effect.accesses)

    @property
    def observes(self) -> Observation:
        """What its results tell of what other threads, or functions that the thread called, write."""
        can_change = self.space.others_write or self.space.passes_results
        return self.row.observes if can_change else Observation.NOTHING

    @property
    def operation(self) -> str:
        """The atomic operation."""
        return self.get("operation", self.row.operation)

    @property
    def commutes(self) -> bool:
        """Whether an atomic operation leaves the same bits in memory in whatever order lanes come to it."""
        if self.operation == "add":
            return not packed_element(self.type).is_float
        return self.operation in _COMMUTING

    @property
    def elements(self) -> int:
        """The elements of a load, store or matrix load: registers of a lane."""
        return int((self.get("vec") or self.get("number", "v1"))[1:])

    @property
    def lane_bytes(self) -> int:
        """Bytes that one lane moves in a request; of a matrix load, those at the address that it gives."""
        effect = self.row.effect
        return self.immediates[0] if effect.size_operand else effect.lane_bytes or self.type.bytes * self.elements

    def operand_type(self, slot: OperandSlot) -> ScalarType:
        """The type of an operand."""
        if slot.type == "wide":
            return WIDENED[self.type.name]
        return self.types.get(slot.type) or TYPES.get(slot.type) or self.type


TABLE: list[Row] = []
_BY_MNEMONIC: dict[str, list[Row]] = {}
_MODIFIER = re.compile(r"(\{?)\.([\w:]+)(\}?)")


def _parse_operand(text: str, *, first: bool, has_destination: bool) -> list[OperandSlot]:
    slots: list[OperandSlot] = []
    for position, part in enumerate(text.split("|")):
        name, _, kind = part.strip().partition(":")
        optional = name.endswith("?") or kind.endswith("?")
        name, kind = name.rstrip("?"), kind.rstrip("?")
        vector, packed = name.endswith("*"), name.endswith("#")
        name = name.rstrip("*#")
        address = name.startswith("[")
        implied = name.startswith("%")
        paired = position > 0 and not implied
        slots.append(
            OperandSlot(
                name=name.strip("[]"),
                type=kind or "type",
                is_destination=first and has_destination and not address,
                is_address=address,
                may_be_vector=vector,
                may_be_packed=packed,
                optional=optional or paired,
                paired=paired,
                implied=implied,
            )
        )
    return slots


def _parse_operands(text: str, *, has_destination: bool) -> tuple[OperandSlot, ...]:
    parts = enumerate(part.strip() for part in text.split(",") if part.strip())
    slots = (_parse_operand(part, first=index == 0, has_destination=has_destination) for index, part in parts)
    return tuple(slot for pair in slots for slot in pair)


def _parse_modifiers(
    text: str, kinds: Mapping[str, str], alternatives: Mapping[str, frozenset[str]]
) -> tuple[frozenset[str], Mapping[str, tuple[frozenset[str], bool]], tuple[tuple[str, frozenset[str]], ...]]:
    """The literals, the groups and the slots of types (as `Row` has them) of an opcode behind its mnemonic."""
    literals: set[str] = set()
    chosen: dict[str, tuple[frozenset[str], bool]] = {}
    slots: list[tuple[str, frozenset[str]]] = []
    for brace, name, _ in _MODIFIER.findall(text):
        if name in kinds:
            slots.append((name, frozenset(kinds[name].split())))
        elif name in TYPES:
            slots.append(("type" if not slots else f"type{len(slots)}", frozenset((name,))))
        elif name in alternatives:
            chosen[name] = (alternatives[name], not brace)
        elif brace:
            chosen[name] = (frozenset((name,)), False)
        else:
            literals.add(name)
    return frozenset(literals), chosen, tuple(slots)


def _alternatives(syntax: str, groups: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """The modifiers of each group of a row."""
    alternatives = {name: frozenset(text.split()) for name, text in groups.items()}
    unknown = alternatives.get("space", frozenset()) - BY_MODIFIER.keys()
    if unknown:
        raise ValueError(f"{syntax}: the table of spaces has no {', '.join(sorted(unknown))}")
    return alternatives


def row(
    syntax: str,
    *,
    section: str,
    pipe: Pipe,
    types: str | Mapping[str, str] = "",
    groups: Mapping[str, str] | None = None,
    effect: Effect = Effect.NONE,
    flops: int = 0,
    flop_pipe: str = "",
    counts: str | None = None,
    shuffles: bool = False,
    rounds: str = "",
    wider_registers: bool = False,
    takes_symbols: bool = False,
    observes: Observation | None = None,
    operation: str = "",
    aligned: bool = False,
    converts_addresses: bool = False,
    names_blocks: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the decorated meaning to the table; its docstring's first line is the row's summary."""

    def add(meaning: Callable[..., Any]) -> Callable[..., Any]:
        opcode, _, operand_text = syntax.partition(" ")
        mnemonic = opcode.split(".")[0].split("{")[0]
        kinds = {"type": types} if isinstance(types, str) else dict(types)
        alternatives = _alternatives(syntax, groups or {})
        literals, chosen, slots = _parse_modifiers(opcode[len(mnemonic) :], kinds, alternatives)
        entry = Row(
            syntax=syntax,
            summary=(meaning.__doc__ or "").strip().splitlines()[0],
            section=section,
            pipe=pipe,
            effect=effect,
            flops=flops,
            flop_pipe=flop_pipe,
            meaning=meaning,
            mnemonic=mnemonic,
            literals=literals,
            groups=chosen,
            type_slots=slots,
            operands=_parse_operands(operand_text, has_destination=effect.has_destination),
            counts=counts,
            shuffles=shuffles,
            rounds=rounds,
            wider_registers=wider_registers,
            takes_symbols=takes_symbols,
            observes=effect.observes if observes is None else observes,
            operation=operation,
            aligned=aligned,
            converts_addresses=converts_addresses,
            names_blocks=names_blocks,
        )
        TABLE.append(entry)
        _BY_MNEMONIC.setdefault(mnemonic, []).append(entry)
        find_form.cache_clear()
        return meaning

    return add


def _match(entry: Row, modifiers: Sequence[str]) -> Form | None:
    types = [name for name in modifiers if name in TYPES]
    rest = [name for name in modifiers if name not in TYPES]
    if len(types) != len(entry.type_slots) or len(set(rest)) != len(rest):
        return None
    if any(name not in kinds for name, (_, kinds) in zip(types, entry.type_slots, strict=True)):
        return None
    left = set(rest)
    if not entry.literals <= left:
        return None
    left -= entry.literals
    chosen: dict[str, str] = {}
    for group, (alternatives, required) in entry.groups.items():
        found = left & alternatives
        if len(found) > 1 or (required and not found):
            return None
        if found:
            chosen[group] = found.pop()
            left.discard(chosen[group])
    if left:
        return None
    by_slot = {slot: TYPES[name] for name, (slot, _) in zip(types, entry.type_slots, strict=True)}
    return Form(entry, by_slot, chosen, frozenset(rest))


@cache
def find_form(mnemonic: str, modifiers: tuple[str, ...]) -> Form | None:
    """The form of an opcode, None where the table has no row for it."""
    for entry in _BY_MNEMONIC.get(mnemonic, ()):
        form = _match(entry, modifiers)
        if form is not None:
            return form
    return None


def effect_of(mnemonic: str, modifiers: tuple[str, ...]) -> Effect:
    """What an opcode does, before its operands are known; of an unknown form, what the mnemonic's first row does."""
    form = find_form(mnemonic, modifiers)
    if form is not None:
        return form.row.effect
    rows = _BY_MNEMONIC.get(mnemonic)
    return rows[0].effect if rows else Effect.NONE
