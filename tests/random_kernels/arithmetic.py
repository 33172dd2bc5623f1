"""Statements of one instruction that computes: any row of the table without an effect, with any modifiers and types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from random import Random

from grammar import Statement, plain
from opcodes import opcodes_of, random_opcode_of
from operands import SPECIAL_WORDS, Source
from register_classes import PARTS

from triptych.gpu.isa import TABLE, Effect, Form, OperandSlot, Row, find_form
from triptych.gpu.isa.targets import meets

OF_CLUSTERS = frozenset(("mapa", "getctarank"))
"""Mnemonics of what the kernels have no use for: they are launched without clusters."""
TARGET = "sm_80"
"""What the kernels are for: they draw no opcode that it has not."""


def _is_drawn(opcode: str) -> bool:
    """Whether kernels hold an opcode: not of clusters, nor of 128 bits, for which they have no registers."""
    return not {"shared::cluster", "b128"} & set(opcode.split(".")) and all(
        meets(TARGET, need) for need in form_of(opcode).needs
    )


def drawable(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows that have an opcode for the kernels."""
    return tuple(row for row in rows if any(map(_is_drawn, opcodes_of(row))))


def draw_opcode(row: Row, source: Random) -> str:
    """An opcode of a row at random that kernels hold."""
    while not _is_drawn(opcode := random_opcode_of(row, source)):
        pass
    return opcode


def form_of(opcode: str) -> Form:
    """The form of an opcode that a row gave."""
    mnemonic, *modifiers = opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    assert form is not None, opcode
    return form


ARITHMETIC = drawable(row for row in TABLE if row.effect is Effect.NONE and row.mnemonic not in OF_CLUSTERS)
_MNEMONICS = tuple(dict.fromkeys(row.mnemonic for row in ARITHMETIC))

ALWAYS_PAIRED = frozenset(("lop3", "elect"))
"""Of these `ptxas` wants both halves of the pair."""


@cache
def _rows_of(mnemonic: str) -> Sequence[Row]:
    return tuple(row for row in ARITHMETIC if row.mnemonic == mnemonic)


@cache
def _carrying() -> Sequence[Row]:
    """The rows that set a flag and read none."""
    return tuple(row for row in ARITHMETIC if [slot.is_destination for slot in row.operands if slot.implied] == [True])


def arithmetic(source: Source) -> Statement:
    """Any row: half of the time each mnemonic is as likely as any other, half of the time each row."""
    rows = ARITHMETIC if source.chance(0.5) else _rows_of(source.random.choice(_MNEMONICS))
    row = source.random.choice(rows)
    if any(slot.implied and not slot.is_destination for slot in row.operands):
        first = source.random.choice(_carrying())
        return plain(instruction(source, first), instruction(source, row))
    if row.takes_symbols and source.chance(0.3):
        return _movement(source, row)
    return plain(source.guard() + instruction(source, row))


def instruction(source: Source, row: Row) -> str:
    """An instruction of a row, without a guard."""
    opcode = draw_opcode(row, source.random)
    form = form_of(opcode)
    operands: list[str] = []
    for slot in row.operands:
        missing = slot.optional and not slot.paired and (slot.name in row.needs or source.chance(0.5))
        if slot.implied or missing:
            continue
        if slot.paired:
            operands[-1] += _second(source, form, slot, operands[-1])
        elif slot.is_destination:
            operands.append(_destination(source, form, slot))
        else:
            operands.append(source.source(form, slot))
    return f"{opcode} {', '.join(operands)};"


def _destination(source: Source, form: Form, slot: OperandSlot) -> str:
    return source.register(form, slot)


def _second(source: Source, form: Form, slot: OperandSlot, first: str) -> str:
    """The second half of a pair, or nothing."""
    if form.row.mnemonic not in ALWAYS_PAIRED and source.chance(0.4):
        return ""
    other = _destination(source, form, slot)
    return f"|{other}" if other != first else ""


def _movement(source: Source, row: Row) -> Statement:
    """What only moves can do: special registers, addresses of variables, packing and unpacking."""
    if row.mnemonic != "mov":
        return plain(instruction(source, row))
    kind = source.random.randrange(4)
    if kind == 0:
        return plain(f"{source.guard()}mov.u32 {source.word()}, {source.random.choice(SPECIAL_WORDS)};")
    if kind == 1:
        symbol = source.random.choice(("tile", "own", "constants", "module"))
        return plain(f"mov.u64 {source.of_class('d')}, {symbol}{source.random.choice(('', '+4', '+16'))};")
    bits, count = source.random.choice(((32, 2), (64, 2), (64, 4)))
    whole = source.of_class({32: "r", 64: "d"}[bits])
    parts = [source.of_class(PARTS[bits // count]) for _ in range(count)]
    if kind == 2:
        return plain(f"{source.guard()}mov.b{bits} {whole}, {{{', '.join(parts)}}};")
    if len(set(parts)) < count:
        parts[1:] = ["_"] * (count - 1)
    return plain(f"{source.guard()}mov.b{bits} {{{', '.join(parts)}}}, {whole};")
