"""An instruction joined with its row: which operands it reads and writes, and as which types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from triptych.core.errors import UnsupportedInstruction
from triptych.core.forks import LazyProperty
from triptych.gpu.isa.calls import HOST_FUNCTIONS, HostFunction, is_host_call
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.special_registers import RESERVED_SHARED
from triptych.gpu.isa.table import Form, OperandSlot, find_form
from triptych.gpu.isa.types import B64, B128, PRED, TYPES, U32, U64, ScalarType
from triptych.gpu.syntax.ast import (
    Address,
    AddressList,
    Function,
    Group,
    Instruction,
    Integer,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)
from triptych.gpu.syntax.variables import size_of

CARRY = "%cc.cf"
"""The carry flag of extended-precision arithmetic (PTX manual, 9.7.2): a register that rows imply."""
STACK_USED = "%stack.used"
"""How many bytes of its stack a thread uses, 0 at first: another."""

_NOTHING: Mapping[str, str] = {}
_Shape = tuple[str, tuple[str, ...], tuple[tuple[str, int], ...], frozenset[str], frozenset[str]]
"""What a form is made of (`_shaped`)."""
_HALVES = ("#low", "#high")
"""What the names of a 128-bit register's halves end with: all behind binding knows such a register by these alone."""


def with_implied_registers(function: Function) -> Function:
    """The function with the registers declared that its instructions may imply, and the halves of 128-bit ones."""
    wide = (name for name, kind in function.registers.items() if kind == B128.name)
    halves = {name + half: B64.name for name in wide for half in _HALVES}
    return replace(function, registers={**function.registers, **halves, CARRY: "pred", STACK_USED: "u64"})


def whole_register(name: str) -> str:
    """The register that a name, of a half of it maybe, is of."""
    return name.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Bound:
    """One operand with its type; a vector operand of a load or a store is one `Bound` an element."""

    operand: Operand
    type: ScalarType
    is_address: bool = False
    may_be_packed: bool = False
    added: bool = False
    """Whether the row asks for it, and no text says it."""


_ALL_LANES = Bound(Integer(-1), U32)


@dataclass(frozen=True, slots=True)
class Barrier:
    """The operands of a block barrier."""

    number: Bound
    threads: Bound | None
    """How many are to arrive; None: all of the block."""
    predicate: Bound | None
    """What a reduction combines."""
    aligned: bool
    """Whether all threads of a warp come together, as one that counts in full."""


@dataclass(frozen=True)
class BoundInstruction:
    """An instruction whose opcode has a row. What all passes ask for again and again is found once (no slots)."""

    instruction: Instruction
    form: Form
    destinations: tuple[Bound, ...]
    sources: tuple[Bound, ...]
    host: HostFunction | None = None
    """The function of the host that it calls."""

    @property
    def effect(self) -> Effect:
        """The row's effect; that of calls of the host is another than that of other calls."""
        return self.form.row.effect if self.host is None else Effect.HOST_CALL

    @property
    def membermask(self) -> Bound | None:
        """The operand that names the lanes that take part; all, of an instruction of the whole warp."""
        if self.form.row.takes_whole_warp:
            return _ALL_LANES
        return self.sources[-1] if self.form.row.has_membermask else None

    @property
    def barrier(self) -> Barrier | None:
        """What it says of a barrier of the block."""
        if not self.effect.is_block_barrier:
            return None
        barrier, *rest = self.sources
        predicate = rest.pop() if self.effect.combines else None
        aligned = self.form.row.aligned or self.form.has("aligned")
        return Barrier(barrier, rest[0] if rest else None, predicate, aligned)

    @LazyProperty
    def uses(self) -> frozenset[str]:
        """The registers read, the guard's included."""
        names = {name for bound in self.sources for name in registers_of(bound.operand)}
        if self.instruction.guard is not None:
            names.add(self.instruction.guard.register.name)
        return frozenset(names)

    @property
    def reaches_reserved(self) -> bool:
        """Whether it asks where the system's part of shared memory is."""
        return not self.uses.isdisjoint(RESERVED_SHARED)

    @LazyProperty
    def defines(self) -> frozenset[str]:
        """The registers written."""
        return frozenset(name for bound in self.destinations for name in registers_of(bound.operand))


def registers_of(operand: Operand) -> Iterator[str]:
    """The names of the registers in an operand."""
    match operand:
        case Register(name):
            yield name
        case Not(inner):
            yield inner.name
        case Address(base):
            if isinstance(base, Register):
                yield base.name
        case Vector(elements) | Group(elements) | AddressList(elements):
            for element in elements:
                yield from registers_of(element)
        case Pair(first, second):
            yield from registers_of(first)
            yield from registers_of(second)
        case _:
            return


WAYS_ROUND: Mapping[str, str] = {
    "multimem": "it reduces over the memory of several GPUs, of which there is one here",
    "tcgen05": "Triton's tl.dot does without it where it compiles for sm_90 or lower (--target)",
}
"""What to do without instructions that have no row, by mnemonic."""


def _error(instruction: Instruction, what: str) -> UnsupportedInstruction:
    return UnsupportedInstruction(
        f"{what} (PTX line {instruction.line})",
        where=instruction.where,
        frames=instruction.frames,
        hint=WAYS_ROUND.get(instruction.mnemonic, "`triptych instructions` lists what is supported"),
    )


def _halves_of(operand: Operand) -> Iterator[Operand]:
    """The low and the high half of an operand of 128 bits; of what is none, the operand itself."""
    match operand:
        case Register(name):
            yield from (Register(name + half) for half in _HALVES)
        case Vector((low, high)):
            yield from (low, high)
        case Vector((first, second, third, fourth)):
            yield from (Vector((first, second)), Vector((third, fourth)))
        case Sink():
            yield from (operand, operand)
        case _:
            yield operand


def _elements(operand: Operand, slot: OperandSlot, form: Form) -> Iterator[Bound]:
    kind = form.operand_type(slot)
    if kind is B128 and not slot.is_address and (slot.may_be_packed or not isinstance(operand, Vector)):
        yield from (Bound(half, B64, may_be_packed=slot.may_be_packed) for half in _halves_of(operand))
    elif isinstance(operand, Vector) and slot.may_be_vector:
        yield from (Bound(element, kind) for element in operand.elements)
    else:
        yield Bound(operand, kind, slot.is_address, slot.may_be_packed)


def _has_type(operand: Operand | None, t: ScalarType, declared: Mapping[str, str]) -> bool:
    """Whether it is a register of a type's size, or a predicate where that is the type."""
    if isinstance(operand, Not):
        return t is PRED
    own = TYPES.get(declared.get(operand.name, "")) if isinstance(operand, Register) else None
    return own is not None and own.bits == t.bits


def constants_of(module: Module) -> tuple[Bound, ...]:
    """The address and the size of each constant of a module."""
    constants = (variable for variable in module.variables.values() if variable.space == "const")
    both = ((Symbol(variable.name), Integer(size_of(variable))) for variable in constants)
    return tuple(Bound(operand, U64, added=True) for pair in both for operand in pair)


def bind(
    instruction: Instruction, declared: Mapping[str, str] = _NOTHING, constants: tuple[Bound, ...] = ()
) -> BoundInstruction:
    """Joins an instruction with its row.

    `declared` are the types of the registers, without which operands of two possible types have the first; `constants`
    those of the module.

    Raises:
        UnsupportedInstruction: no row has the opcode, or the operands do not fit the row's.
    """
    form = find_form(instruction.mnemonic, instruction.modifiers)
    if form is None:
        raise _error(instruction, f"PTX instruction '{instruction.opcode}' is not supported")
    if form.row.effect is Effect.CALL:
        return _bind_call(instruction, form)
    if form.row.effect.ends_block:
        index = instruction.operands[:1] if form.row.effect is Effect.SWITCH else ()
        return BoundInstruction(instruction, form, (), tuple(Bound(o, U32) for o in index))
    destinations: list[Bound] = []
    sources: list[Bound] = []
    present: set[str] = set()
    given = list(_assign(instruction, form, list(_flatten_pairs(instruction, form))))
    shape = (
        instruction.mnemonic,
        instruction.modifiers,
        tuple((slot.name, operand.value) for slot, operand in given if isinstance(operand, Integer)),
        frozenset(slot.name for slot, operand in given if isinstance(operand, Vector) and slot.may_be_vector),
        frozenset(
            s.name for s, operand in given if s.alternative and _has_type(operand, TYPES[s.alternative], declared)
        ),
    )
    form = _shaped(*shape)
    for slot, operand in given:
        if slot.is_literal and operand is not None and not isinstance(operand, Integer):
            raise _error(instruction, f"'{instruction.opcode}': the operand '{slot.name}' must be a literal")
        elements = [] if operand is None else list(_elements(operand, slot, form))
        destinations += elements if slot.is_destination else []
        sources += elements if slot.is_read or not slot.is_destination else []
        present |= {slot.name} if slot.optional and operand is not None else set[str]()
    immediates = tuple(b.operand.value for b in sources if isinstance(b.operand, Integer))
    form = _completed(immediates, frozenset(present), *shape)
    sources += constants if form.row.takes_constants else ()
    return BoundInstruction(instruction, form, tuple(destinations), tuple(sources))


@lru_cache(maxsize=1 << 12)
def _shaped(
    mnemonic: str,
    modifiers: tuple[str, ...],
    literals: tuple[tuple[str, int], ...],
    vectors: frozenset[str],
    alternatives: frozenset[str],
) -> Form:
    """The form of an opcode, with what its operands are; one object for all that are alike."""
    form = find_form(mnemonic, modifiers)
    assert form is not None
    return replace(form, literals=dict(literals), vectors=vectors, alternatives=alternatives)


@lru_cache(maxsize=1 << 12)
def _completed(immediates: tuple[int, ...], given: frozenset[str], *shape: *_Shape) -> Form:
    """The same with its immediates, and which optional operands there are."""
    return replace(_shaped(*shape), immediates=immediates, given=given)


def reaches_other_blocks(instructions: Iterable[Instruction]) -> bool:
    """Whether a kernel of these makes addresses of other blocks' shared memory, which its generic ones may be then."""
    forms = (find_form(i.mnemonic, i.modifiers) for i in instructions)
    return any(form is not None and form.row.names_blocks for form in forms)


def bind_in_clusters(
    instruction: Instruction, declared: Mapping[str, str] = _NOTHING, constants: tuple[Bound, ...] = ()
) -> BoundInstruction:
    """As `bind`, in a kernel that reaches other blocks' shared memory."""
    found = bind(instruction, declared, constants)
    return replace(found, form=replace(found.form, in_clusters=True))


def with_numerics(bound: BoundInstruction, numerics: str) -> BoundInstruction:
    """An instruction whose multiplications of matrices are of an arithmetic of `isa/tensor/numerics.py`."""
    if bound.form.row.product is None or bound.form.numerics == numerics:
        return bound
    return replace(bound, form=replace(bound.form, numerics=numerics))


def _bind_call(instruction: Instruction, form: Form) -> BoundInstruction:
    """A call as `flow` writes it: of the host, with values as operands; else the index of one of several functions."""
    if not is_host_call(instruction):
        index = (o for o in instruction.operands if isinstance(o, Register))
        return BoundInstruction(instruction, form, (), tuple(Bound(o, U32) for o in index))
    results, target, arguments = instruction.operands
    assert isinstance(results, Group)
    assert isinstance(target, Symbol)
    assert isinstance(arguments, Group)
    row = HOST_FUNCTIONS[target.name]
    given = tuple(Bound(o, row.result) for o in results.elements if row.result is not None)
    taken = tuple(Bound(o, t) for o, t in zip(arguments.elements, row.parameters, strict=True))
    return BoundInstruction(instruction, form, given, taken, row)


def _flatten_pairs(instruction: Instruction, form: Form) -> Iterator[Operand]:
    paired = any(slot.paired for slot in form.row.operands)
    for position, operand in enumerate(instruction.operands):
        if isinstance(operand, Pair):
            yield operand.first
            yield operand.second
        elif isinstance(operand, AddressList) or (isinstance(operand, Vector) and form.row.has_groups):
            yield from _flatten_group(operand)
        else:
            yield operand
            if paired and position == 0:
                yield Sink()


def _flatten_group(group: AddressList | Vector) -> Iterator[Operand]:
    """The elements of `{x, y}`, and of `[map, {x, y}]`, the first of which is an address."""
    elements = group.elements
    if isinstance(group, AddressList):
        first, *elements = elements
        yield Address(first) if isinstance(first, Register | Symbol | Integer) else first
    for element in elements:
        if isinstance(element, Vector):
            yield from element.elements
        else:
            yield element


def _assign(instruction: Instruction, form: Form, given: list[Operand]) -> Iterator[tuple[OperandSlot, Operand | None]]:
    slots = [slot for slot in form.row.operands if not slot.implied]
    least = sum(not slot.optional for slot in slots)
    paired = sum(slot.paired for slot in slots)
    if not least + paired <= len(given) <= len(slots):
        expected = form.row.syntax.partition(" ")[2]
        raise _error(instruction, f"'{instruction.opcode}' takes the operands '{expected}'")
    written, left, needed = iter(given), len(given), least + paired
    if slots and slots[0].name == "_" and not isinstance(given[0], Sink):
        raise _error(instruction, f"'{instruction.opcode}' gives nothing: its first operand must be '_'")
    for slot in form.row.operands:
        if slot.implied:
            yield slot, Register(slot.name)
        elif slot.optional and not slot.paired and left <= needed:
            yield slot, None
        else:
            left, needed = left - 1, needed - (slot.paired or not slot.optional)
            yield slot, next(written)
