"""Opcodes as text: taken apart without the table (for the witnesses), and written out from a row (for the kernels)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from triptych.gpu.isa import Row

TYPE_NAMES = frozenset(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64)) | frozenset(
    ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "pred")
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


def opcodes_of(row: Row) -> Iterator[str]:
    """Every combination of a row's types and modifiers."""
    choices = [
        [*([] if required else [()]), *((name,) for name in sorted(names))] for names, required in row.groups.values()
    ]
    kinds = [sorted(names) for _, names in row.type_slots]
    for chosen in product(*choices):
        modifiers = [*sorted(row.literals), *(name for names in chosen for name in names)]
        for types in product(*kinds):
            yield ".".join((row.mnemonic, *modifiers, *types))
