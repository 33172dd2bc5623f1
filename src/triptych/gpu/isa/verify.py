"""Whether an instruction's operands are what its row takes: the last look before meaning (PTX manual, 9.2 and 9.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triptych.core.errors import PtxSyntaxError, UnsupportedFeature
from triptych.gpu.isa.binding import Bound, BoundInstruction, whole_register
from triptych.gpu.isa.special_registers import SPECIALS
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.targets import describe, meets
from triptych.gpu.isa.types import B128, PRED, TYPES, ScalarType
from triptych.gpu.syntax.ast import (
    Address,
    FloatBits,
    Instruction,
    Integer,
    Not,
    Operand,
    Register,
    Sink,
    Symbol,
    Vector,
)
from triptych.gpu.syntax.names import is_special


class _Mismatch(Exception):
    """What does not fit."""


def verify(bound: BoundInstruction, declared: Mapping[str, str], target: str) -> None:
    """Checks a bound instruction against its row; `declared` are the function's registers and their types.

    `target` is the module's (`sm_90a`).

    Raises:
        PtxSyntaxError: an operand is of the wrong kind or type, or the target does not have the instruction.
        UnsupportedFeature: an operand is a special register without a row.
    """
    instruction = bound.instruction
    try:
        _verify_guard(instruction, declared)
        _verify_counts(bound)
        _verify_form(bound.form, target)
        for destination in bound.destinations:
            _verify_destination(destination, bound, declared)
        for source in (source for source in bound.sources if not source.added):
            _verify_source(source, bound, declared)
    except _Mismatch as mismatch:
        message = f"'{instruction.opcode}': {mismatch} (PTX line {instruction.line})"
        raise PtxSyntaxError(message, where=instruction.where) from None


def _verify_form(form: Form, target: str) -> None:
    """Whether the modifiers go together, and the target has them."""
    if form.broken_rule is not None:
        raise _Mismatch(form.broken_rule)
    for need in form.needs:
        if not meets(target, need):
            raise _Mismatch(f"it needs .target {describe(need)}, and this module's is {target}")


def _verify_guard(instruction: Instruction, declared: Mapping[str, str]) -> None:
    guard = instruction.guard
    if guard is not None and declared.get(guard.register.name) != PRED.name:
        raise _Mismatch(f"the guard {guard.register.name} is no predicate register")


def _verify_counts(bound: BoundInstruction) -> None:
    """Vector elements of loads and stores, registers of matrices, and the literals that decide what is moved."""
    if bound.form.fragments:
        _verify_fragments(bound)
        return
    if any(slot.may_be_vector for slot in bound.form.row.operands):
        kind, wanted = bound.form.words
        for given in _vector_lengths(bound):
            if given != wanted:
                raise _Mismatch(f"{wanted} element{'s' if wanted > 1 else ''} expected, not {given}")
        most = bound.form.space.vector_bytes
        if wanted * kind.bytes > most:
            raise _Mismatch(f"vectors of more than {most} bytes are of global memory alone")
    if bound.effect.size_operand:
        size = bound.sources[2].operand
        if not isinstance(size, Integer) or size.value not in (4, 8, 16):
            raise _Mismatch("the size must be a literal 4, 8 or 16")


def _verify_fragments(bound: BoundInstruction) -> None:
    fragments = bound.form.fragments
    for slot, operand in zip(bound.form.row.operands, bound.instruction.operands, strict=False):
        if slot.name in fragments:
            wanted = fragments[slot.name].registers
            given = len(operand.elements) if isinstance(operand, Vector) else 1
            if given != wanted:
                raise _Mismatch(f"{slot.name} has {wanted} register{'s' if wanted > 1 else ''} here, not {given}")


def _vector_lengths(bound: BoundInstruction) -> Iterator[int]:
    """The elements given for each operand that may be a vector; of the sources, one at most."""
    slots = bound.form.row.operands
    if any(slot.may_be_vector and slot.is_destination for slot in slots):
        yield len(bound.destinations)
    sources = [slot for slot in slots if not slot.is_destination]
    if any(slot.may_be_vector for slot in sources):
        yield len(bound.sources) - sum(not slot.may_be_vector for slot in sources)


def _register_type(name: str, declared: Mapping[str, str]) -> ScalarType:
    kind = declared.get(name)
    if kind is None and (whole := whole_register(name)) != name:
        raise _Mismatch(f"{whole} is .{declared.get(whole, 'none')} where .{B128} is expected")
    if kind is None:
        raise _Mismatch(f"{name} is not a register that can be used here")
    if kind not in TYPES:
        raise _Mismatch(f"register {name} has type .{kind}, which is not supported")
    return TYPES[kind]


def _verify_register(name: str, t: ScalarType, bound: BoundInstruction, declared: Mapping[str, str]) -> None:
    own = _register_type(name, declared)
    if (own is PRED) != (t is PRED):
        raise _Mismatch(f"{name} is .{own} where .{t} is expected")
    fits = own.bits >= t.bits if bound.form.row.wider_registers else own.bits == t.bits
    if not fits:
        raise _Mismatch(f"{name} is .{own} where .{t} is expected")


def _verify_destination(destination: Bound, bound: BoundInstruction, declared: Mapping[str, str]) -> None:
    match destination.operand:
        case Register(name):
            _verify_register(name, destination.type, bound, declared)
        case Vector(elements) if destination.may_be_packed:
            _verify_parts(elements, destination.type, declared)
        case Sink():
            return
        case _:
            raise _Mismatch("the destination must be a register")


def _verify_parts(elements: tuple[Operand, ...], t: ScalarType, declared: Mapping[str, str]) -> None:
    """The parts of a packed value: registers (or `_`) of equal width that fill it."""
    if len(elements) not in (2, 4) or t.bits % len(elements) or t.bits // len(elements) < 8:
        raise _Mismatch(f".{t} cannot be cut into {len(elements)}")
    for name in _named(elements):
        own = _register_type(name, declared)
        if own.bits != t.bits // len(elements):
            raise _Mismatch(f"{name} is .{own} where a part of {t.bits // len(elements)} bits is expected")


def _named(elements: tuple[Operand, ...]) -> Iterator[str]:
    for element in elements:
        match element:
            case Register(name):
                yield name
            case Integer() | Sink():
                continue
            case _:
                raise _Mismatch("a part must be a register or an integer")


def _verify_source(source: Bound, bound: BoundInstruction, declared: Mapping[str, str]) -> None:
    operand, t = source.operand, source.type
    if isinstance(operand, Address) != source.is_address:
        raise _Mismatch("an address in brackets is expected" if source.is_address else "no address is expected here")
    match operand:
        case Address(base):
            _verify_address(base, declared)
        case Register(name) if name in declared:
            _verify_register(name, t, bound, declared)
        case Register(name):
            _verify_special(name, t, bound.instruction)
        case Not(Register(name)):
            if t is not PRED or declared.get(name) != PRED.name:
                raise _Mismatch(f"!{name} needs predicates")
        case Integer():
            if t.is_float:
                raise _Mismatch(f"an integer where .{t} is expected")
        case FloatBits(_, width):
            if t.bits not in (32, width) or t.kind not in ("float", "bits") or t.bits < 32:
                raise _Mismatch(f"a floating-point literal of {width} bits where .{t} is expected")
        case Symbol(name):
            if not bound.form.row.takes_symbols or t.bits not in (32, 64) or t.is_float:
                raise _Mismatch(f"the address of '{name}' where .{t} is expected")
        case Vector(elements) if source.may_be_packed and isinstance(bound.destinations[0].operand, Register):
            _verify_parts(elements, t, declared)
        case _:
            raise _Mismatch("an operand is of a kind that is not taken here")


def _verify_special(name: str, t: ScalarType, instruction: Instruction) -> None:
    special = SPECIALS.get(name)
    if special is None and is_special(name):
        what = f"special register {name} in '{instruction.opcode}' is not supported (PTX line {instruction.line})"
        raise UnsupportedFeature(what, where=instruction.where, frames=instruction.frames)
    own = None if special is None else special.type
    fits = own is not None and (t is PRED if own is PRED else own.bits <= t.bits and not t.is_float)
    if not fits:
        raise _Mismatch(f"{name} is not a register that can be used here")


def _verify_address(base: Register | Symbol | Integer, declared: Mapping[str, str]) -> None:
    if isinstance(base, Register) and _register_type(base.name, declared).bits not in (32, 64):
        raise _Mismatch(f"{base.name} cannot hold an address: 32 or 64 bits are needed")
    if isinstance(base, Register) and _register_type(base.name, declared).is_float:
        raise _Mismatch(f"{base.name} cannot hold an address: it is a floating-point register")
