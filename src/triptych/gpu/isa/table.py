"""The instruction table's machinery: a row is the manual's syntax line plus its meaning.

A syntax line reads like the manual's: `add{.ftz}{.sat}.f32 d, a, b`. In the opcode, braces mean optional, a name that
`groups` lists stands for one of its alternatives, a type or a name that `types` lists stands for a type; any other
name stands for itself. Modifiers other than types match in any order, as `ptxas` takes them, but those of two groups
with the same alternatives are told apart by theirs. In the operands, `d:pred` gives an operand's own type where it is
not the instruction's: a type, a slot's name, or `wide` for twice the width; `[a]` is an address, `d*` may be a vector
of elements `{a, b}`, `d#` may be given as the parts `{a, b}` of one value, `d|p:pred` is a pair of which the second may
be missing, `c?` may be missing altogether, `e:u32/pred` may be of another type, `n!` must be a literal, `d+` is a
destination that is read, too, `_` must be the sink. Operands may stand in groups, `[map, {x, y}]`, each of whose
elements is one. An operand that begins with `%` is implied: a register that the text does not write, such as the carry
flag `%cc.cf`. A last operand that is called `membermask` names the lanes that take part. Operands that are fragments of
matrices have the registers that `fragments` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any, TypedDict, Unpack

from triptych.core.memory_access import Access
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.spaces import BY_MODIFIER, Space
from triptych.gpu.isa.targets import needs_of
from triptych.gpu.isa.tensor.fragments import Fragment, Product
from triptych.gpu.isa.tensor.numerics import FAST, HARDWARE
from triptych.gpu.isa.tensor.summation import find_summation
from triptych.gpu.isa.types import B64, B128, TYPES, WIDENED, ScalarType, packed_element


class Pipe(Enum):
    """The unit that executes an instruction: the classes by which instructions are counted and costed."""

    INTEGER = "int"
    FP32 = "fp32"
    FP64 = "fp64"
    FP16 = "fp16"
    TENSOR = "tensor"
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
    is_literal: bool = False
    """Whether it must be an integer literal."""
    alternative: str = ""
    """The other type that it may have, by which registers are told; empty: none."""
    is_read: bool = False
    """Of a destination: whether its old value is a source, before those that follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One instruction form."""

    syntax: str
    summary: str
    section: str
    """Of the PTX ISA manual."""
    pipe: Pipe
    effect: Effect
    flops: int = 0
    """Floating-point operations of one lane, for each number of the first type (`f16x2` is two); 0 for the rest."""
    flop_pipe: str = ""
    """The pipe whose FLOPs they are (`tensor.f16`), as chips and counters call it; empty: that of the first type."""
    meaning: Callable[..., Any]
    """(machine, form, *sources) -> destination, destinations or None."""
    mnemonic: str
    literals: frozenset[str]
    groups: Mapping[str, tuple[frozenset[str], bool]]
    """By name: the alternatives, and whether one of them must be there."""
    type_slots: tuple[tuple[str, frozenset[str]], ...]
    operands: tuple[OperandSlot, ...]
    counts: str | None = None
    """The counter that each execution by a warp adds 1 to, beside those that every instruction counts into."""
    shuffles: bool = False
    """Whether the meaning moves values between lanes (`Machine.shuffle`, `Machine.exchange`)."""
    rounds: str = ""
    """The operation that the meaning asks of `Machine.float_directed` where the text rounds other than to nearest."""
    wider_registers: bool = False
    """Whether registers may be wider than the type (PTX manual, 9.4.1)."""
    takes_symbols: bool = False
    """Whether a source may be the address of a variable."""
    takes_constants: bool = False
    """Whether the address and the size of each constant of the module follow its sources."""
    observes: Observation
    """What its results tell of what other threads write."""
    operation: str = ""
    """The atomic operation, where no group of the opcode names it."""
    aligned: bool = False
    """Whether all threads of a warp come to it together, without a modifier that says so."""
    converts_addresses: bool = False
    """Whether it makes a generic address of one of a space, or the other way round."""
    names_blocks: bool = False
    """Whether what it gives may be an address of another block's shared memory."""
    product: Callable[[Form], Product] | None = None
    """The multiplication of matrices that a form of it is; it says the FLOPs, too."""
    fragments: Callable[[Form], Mapping[str, Fragment]] | None = None
    """By operand of a form of it: the fragment of a matrix that the operand's registers hold."""
    moves: Callable[[Form], tuple[int, int]] | None = None
    """What each access of a form of it moves, where the opcode does not say it: bytes of a number, and how many."""
    needs: Mapping[str, str]
    """What a module's target must have (`targets.py`), by the modifier, type or operand that asks for it."""
    restrictions: tuple[Restriction, ...] = ()
    """What its modifiers do not go together with."""

    @property
    def has_membermask(self) -> bool:
        """Whether its last operand names the lanes that take part."""
        return bool(self.operands) and self.operands[-1].name == "membermask"

    @property
    def has_groups(self) -> bool:
        """Whether operands stand in groups, each of whose elements is an operand."""
        return "{" in self.syntax.partition(" ")[2]

    @property
    def names_lanes(self) -> bool:
        """Whether it is one for lanes that come to it together: those of a mask, or all."""
        return self.has_membermask or self.takes_whole_warp

    @property
    def takes_whole_warp(self) -> bool:
        """Whether all lanes of a warp have to execute it together (`.sync.aligned`); else what it does is undefined."""
        return {"sync", "aligned"} <= self.literals

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
    given: frozenset[str] = field(default_factory=frozenset[str])
    """The operands that it has and may be missing; filled in by binding."""
    literals: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same by the operands' names; filled in by `bind`."""
    vectors: frozenset[str] = frozenset()
    """The operands that the text gives as vectors, where they may be; filled in by `bind`."""
    alternatives: frozenset[str] = frozenset()
    """Those that have their other type; filled in by `bind`."""
    in_clusters: bool = False
    """Whether its kernel makes addresses of other blocks' shared memory; filled in by the executors."""
    numerics: str = FAST
    """The arithmetic of tensor cores (`isa/tensor/numerics.py`); filled in by the executors."""

    @property
    def type(self) -> ScalarType:
        """The first type."""
        return next(iter(self.types.values()))

    @property
    def product(self) -> Product | None:
        """The multiplication of matrices that it is."""
        if self.row.product is None:
            return None
        found = replace(self.row.product(self), numerics=self.numerics)
        if self.numerics != HARDWARE:
            return found
        return replace(found, summation=find_summation(self.row.mnemonic, found.types))

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """By operand: the fragment that its registers hold; operands that are no matrices are not there."""
        if self.row.fragments is not None:
            return self.row.fragments(self)
        return {} if self.row.product is None else self.row.product(self).fragments

    @property
    def flops(self) -> int:
        """Floating-point operations of one lane, or those of a multiplication of matrices, shared out equally."""
        if self.row.product is not None:
            return self.row.product(self).flops // WARP_SIZE
        return self.row.flops * (self.type.bits // packed_element(self.type).bits) if self.row.flops else 0

    @property
    def flop_counter(self) -> str:
        """The counter that they go to."""
        if self.row.product is not None:
            return f"flops.tensor.{self.row.product(self).pipe}"
        return f"flops.{self.row.flop_pipe or packed_element(self.type).name}"

    def has(self, modifier: str) -> bool:
        """Whether the text has the modifier."""
        return modifier in self.modifiers

    def get(self, group: str, default: str = "") -> str:
        """The alternative chosen of a group."""
        return self.chosen.get(group, default)

    @property
    def needs(self) -> tuple[str, ...]:
        """What the module's target must have (`targets.py`), all of it."""
        if not self.row.needs:
            return ()
        kinds = (kind.name for kind in self.types.values())
        return tuple(needs_of((*self.modifiers, *kinds, *self.given), self.row.needs))

    @property
    def broken_rule(self) -> str | None:
        """Which of its modifiers do not go together, None where all do."""
        return next((what for rule in self.row.restrictions if (what := rule.broken_by(self))), None)

    @property
    def space(self) -> Space:
        """The state space that the opcode names."""
        within = self.row.effect.generic
        if within is not None and not self.get("space"):
            return within[self.in_clusters]
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
        if self.operation == "add":  # the type may stand in a tensor map
            return bool(self.types) and not packed_element(self.type).is_float
        return self.operation in _COMMUTING

    @property
    def elements(self) -> int:
        """The elements of a load, store or matrix load: registers of a lane."""
        return int((self.get("vec") or self.get("number", "v1"))[1:])

    @property
    def lane_bytes(self) -> int:
        """Bytes that one lane moves in a request; of a matrix load, those at the address that it gives."""
        if self.row.moves is not None:
            return math.prod(self.row.moves(self))
        effect = self.row.effect
        return self.immediates[0] if effect.size_operand else effect.lane_bytes or self.type.bytes * self.elements

    @property
    def words(self) -> tuple[ScalarType, int]:
        """The registers of a lane that a load or store moves, by type and number: 128 bits are two of 64."""
        return (B64, 2) if self.type is B128 else (self.type, self.elements)

    @property
    def unit_bytes(self) -> int:
        """Bytes of the words that an access moves."""
        return self.row.moves(self)[0] if self.row.moves else self.row.effect.unit_bytes or self.words[0].bytes

    def operand_type(self, slot: OperandSlot) -> ScalarType:
        """The type of an operand, or of each of its registers."""
        if slot.name in self.alternatives:
            return TYPES[slot.alternative]
        if slot.name in (fragments := self.fragments):
            return fragments[slot.name].register
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
        kind = kind.rstrip("}]")
        optional = name.endswith("?") or kind.endswith("?")
        name, kind = name.rstrip("?"), kind.rstrip("?")
        kind, _, alternative = kind.partition("/")
        literal, name = name.endswith("!"), name.rstrip("!")
        vector, packed = name.endswith("*"), name.endswith("#")
        name = name.rstrip("*#")
        read, name = name.endswith("+"), name.rstrip("+")
        address = name.startswith("[")
        implied = name.startswith("%")
        paired = position > 0 and not implied
        slots.append(
            OperandSlot(
                name=name.strip("[]{}"),
                type=kind or "type",
                is_destination=first and has_destination and not address,
                is_address=address,
                may_be_vector=vector,
                may_be_packed=packed,
                optional=optional or paired,
                paired=paired,
                implied=implied,
                is_literal=literal,
                alternative=alternative,
                is_read=read,
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


class Columns(TypedDict, total=False):
    """The columns of `Row` that stand in a row's declaration as they are, where they are not what most rows have."""

    flops: int
    flop_pipe: str
    counts: str | None
    shuffles: bool
    rounds: str
    wider_registers: bool
    takes_symbols: bool
    takes_constants: bool
    operation: str
    aligned: bool
    converts_addresses: bool
    names_blocks: bool
    product: Callable[[Form], Product] | None
    fragments: Callable[[Form], Mapping[str, Fragment]] | None
    moves: Callable[[Form], tuple[int, int]] | None
    restrictions: tuple[Restriction, ...]


def row(
    syntax: str,
    *,
    section: str,
    pipe: Pipe,
    types: str | Mapping[str, str] = "",
    groups: Mapping[str, str] | None = None,
    effect: Effect = Effect.NONE,
    observes: Observation | None = None,
    needs: str | Mapping[str, str] = "",
    **columns: Unpack[Columns],
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
            meaning=meaning,
            mnemonic=mnemonic,
            literals=literals,
            groups=chosen,
            type_slots=slots,
            operands=_parse_operands(operand_text, has_destination=effect.has_destination),
            observes=effect.observes if observes is None else observes,
            needs=({"": needs} if needs else {}) if isinstance(needs, str) else needs,
            **columns,
        )
        TABLE.append(entry)
        _BY_MNEMONIC.setdefault(mnemonic, []).append(entry)
        find_form.cache_clear()
        return meaning

    return add


def _match(entry: Row, modifiers: Sequence[str]) -> Form | None:
    types = [name for name in modifiers if name in TYPES]
    rest = [name for name in modifiers if name not in TYPES]
    if len(types) != len(entry.type_slots):
        return None
    if any(name not in kinds for name, (_, kinds) in zip(types, entry.type_slots, strict=True)):
        return None
    left = list(rest)
    for literal in entry.literals:
        if literal not in left:
            return None
        left.remove(literal)
    chosen: dict[str, str] = {}
    for group, (alternatives, required) in entry.groups.items():
        found = next((name for name in left if name in alternatives), None)
        if found is not None:
            chosen[group] = found
            left.remove(found)
        elif required:
            return None
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
