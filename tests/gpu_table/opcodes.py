"""Opcodes as text: taken apart without the table (for the witnesses), and written out from a row (for the kernels)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from triptych.gpu.isa import Row

TYPE_NAMES = frozenset(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64)) | frozenset(
    ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "f32x2", "u16x2", "s16x2", "tf32", "e4m3x2", "e5m2x2", "pred")
)


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


def opcodes_of(row: Row) -> Iterator[str]:
    """Every combination of a row's types and modifiers."""
    return (_write(row, parts) for parts in product(*_choices(row)))


def some_opcodes_of(row: Row, most: int) -> list[str]:
    """All opcodes of a row; of a row with more than `most`, as many: each alternative once, the rest at random."""
    choices = _choices(row)
    if prod(map(len, choices)) <= most:
        return list(opcodes_of(row))
    source = random.Random(row.syntax)
    widest = max(map(len, choices))
    picked = [[kinds[i % len(kinds)] for kinds in choices] for i in range(widest)]
    picked += [list(map(source.choice, choices)) for _ in range(most - widest)]
    return list(dict.fromkeys(_write(row, parts) for parts in picked))


def random_opcode_of(row: Row, source: random.Random) -> str:
    """An opcode of a row at random."""
    return _write(row, map(source.choice, _choices(row)))
