"""Opcodes as text: taken apart without the table (for the witnesses), and written out from a row (for the kernels)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice, product
from math import prod

from triptych.gpu.isa import Form, Row, find_form

TYPE_NAMES = (
    frozenset(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64))
    | frozenset(
        (
            "f16",
            "f32",
            "f64",
            "bf16",
            "f16x2",
            "bf16x2",
            "f32x2",
            "u16x2",
            "s16x2",
            "tf32",
            "pred",
            "b128",
            "u8x4",
            "s8x4",
        )
    )
    | frozenset(f"{name}x2" for name in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0"))
    | frozenset(("u2", "s2", "u4", "s4", "b1", "e4m3", "e5m2"))
)


def source_count(form: Form) -> int:
    """The values that a form's meaning takes; operands that may be vectors and hold no matrix have one element."""
    fragments = form.fragments
    sources = (slot for slot in form.row.operands if slot.is_read or not slot.is_destination)
    return sum(fragments[slot.name].registers if slot.name in fragments else 1 for slot in sources)


@dataclass(frozen=True, slots=True)
class Opcode:
    """A dotted opcode."""

    mnemonic: str
    modifiers: frozenset[str]
    types: tuple[str, ...]

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    @property
    def type(self) -> str:
        return self.types[0]

    @property
    def mode(self) -> str:
        """The rounding of a result."""
        return next((mode for mode in ("rz", "rm", "rp") if mode in self.modifiers), "rn")


def read_opcode(text: str) -> Opcode:
    mnemonic, *rest = text.split(".")
    types = tuple(name for name in rest if name in TYPE_NAMES)
    return Opcode(mnemonic, frozenset(rest) - set(types), types)


def _choices(row: Row) -> list[list[tuple[str, ...]]]:
    """What each dotted part of a row's opcode may be, in the order of its syntax line; optional parts may be ()."""
    parts: dict[str, list[tuple[str, ...]]] = {literal: [(literal,)] for literal in row.literals}
    for place, (names, required) in row.groups.items():
        parts[place] = [*([] if required else [()]), *((name,) for name in sorted(names))]
    order = [token for token in re.split(r"[.{}]+", row.syntax.partition(" ")[0])[1:] if token]
    types = iter([[(name,) for name in sorted(kinds)] for _, kinds in row.type_slots])
    found = [parts.pop(token, None) or next(types) for token in order]
    assert not parts, f"{row.syntax}: {parts}"
    assert next(types, None) is None, row.syntax
    return found


def _write(row: Row, parts: Iterable[tuple[str, ...]]) -> str:
    return ".".join((row.mnemonic, *(name for part in parts for name in part)))


def _goes_together(opcode: str) -> bool:
    """Whether a row's restrictions allow an opcode; a copy's size stands among its operands."""
    mnemonic, *modifiers = opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    return form is None or replace(form, immediates=(16,)).broken_rule is None


def opcodes_of(row: Row) -> Iterator[str]:
    """Every combination of a row's types and modifiers that go together."""
    return filter(_goes_together, (_write(row, parts) for parts in product(*_choices(row))))


def some_opcodes_of(row: Row, most: int) -> list[str]:
    """All opcodes of a row; of a row with more than `most`, as many: each alternative once, the rest at random."""
    choices = _choices(row)
    if prod(map(len, choices)) <= most:
        return list(opcodes_of(row))
    if row.restrictions:
        return _restricted_opcodes_of(row, choices, most)
    source = random.Random(row.syntax)
    widest = max(map(len, choices))
    picked = [[kinds[i % len(kinds)] for kinds in choices] for i in range(widest)]
    picked += [list(map(source.choice, choices)) for _ in range(most - widest)]
    return list(filter(_goes_together, dict.fromkeys(_write(row, parts) for parts in picked)))


def _restricted_opcodes_of(row: Row, choices: list[list[tuple[str, ...]]], most: int) -> list[str]:
    """Each alternative alone with the first of all others where that will do; the rest at random."""
    source = random.Random(row.syntax)
    plain = [kinds[0] for kinds in choices]
    alone = [[*plain[:i], kind, *plain[i + 1 :]] for i, kinds in enumerate(choices) for kind in kinds]
    mixed = ([source.choice(kinds) for kinds in choices] for _ in range(20 * most))
    found = filter(_goes_together, dict.fromkeys(_write(row, parts) for parts in (*alone, *mixed)))
    return list(islice(found, len(alone) + most))


def random_opcode_of(row: Row, source: random.Random) -> str:
    """An opcode of a row at random."""
    choices = _choices(row)
    return next(filter(_goes_together, (_write(row, map(source.choice, choices)) for _ in count())))
