"""Operands at random: registers of the class that a type wants, literals, special registers."""

from __future__ import annotations

import random
from dataclasses import dataclass

from edge_values import EDGES
from register_classes import CLASSES, classes_for

from triptych.gpu.isa import TABLE, Form, OperandSlot
from triptych.gpu.isa.arithmetic import video
from triptych.gpu.isa.special_registers import SPECIALS, Varies
from triptych.gpu.isa.types import U32, ScalarType

SPECIAL_WORDS = tuple(s.name for s in SPECIALS.values() if s.type is U32 and s.varies is not Varies.CLOCK)
"""The special registers of 32 bits; clocks move as often as they are read, which lanes that part do in any order."""


_ONLY_REGISTERS = frozenset(row.mnemonic for row in TABLE if row.meaning.__module__ == video.__name__)
"""`ptxas` takes literals of video instructions with a selector alone."""
_FIELDS = frozenset(("bfe", "bfi"))
"""Their literals for a place and a length are of 8 bits."""


@dataclass(slots=True)
class Source:
    """The random numbers of one kernel, and what has been taken from them."""

    random: random.Random
    labels: int = 0
    in_function: bool = False
    """What is written now is a function's, not the kernel's."""

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.random.random() < probability

    def label(self, stem: str = "L") -> str:
        """A label that is not used yet."""
        self.labels += 1
        return f"{stem}{self.labels}"

    # Registers --------------------------------------------------------------------------------------------------

    def of_class(self, letter: str) -> str:
        """A register of a class."""
        return f"%{letter}{self.random.randrange(CLASSES[letter].count)}"

    def word(self) -> str:
        """A 32-bit register of bits."""
        return self.of_class("r")

    def register(self, form: Form, slot: OperandSlot) -> str:
        """A register for an operand."""
        return self.of_class(self.random.choice(classes_for(form, slot)))

    def registers(self, form: Form, slot: OperandSlot) -> list[str]:
        """Different registers of one class for the elements of a vector."""
        letters = [one for one in classes_for(form, slot) if CLASSES[one].count >= form.elements]
        return self.random.sample(CLASSES[self.random.choice(letters)].names, form.elements)

    # Sources ----------------------------------------------------------------------------------------------------

    def literal(self, t: ScalarType) -> str | None:
        """A literal of a type; None: PTX writes none of this type."""
        edges = EDGES.get(t.name)
        if edges is None or t.kind == "predicate" or t.name.endswith("x2") or t.name in ("f16", "bf16", "tf32"):
            return None
        value = self.random.choice(edges) if self.chance(0.6) else self.random.getrandbits(t.bits)
        if t.is_float:
            return f"0{'f' if t.bits == 32 else 'd'}{value:0{t.bits // 4}X}"
        if self.chance(0.4):
            value = self.random.randrange(40)
        if t.is_signed and value >> (t.bits - 1):
            return str(value - (1 << t.bits))
        return f"{value:#x}" if self.chance(0.5) else str(value)

    def source(self, form: Form, slot: OperandSlot) -> str:
        """What an instruction reads: mostly a register."""
        t, row = form.operand_type(slot), form.row
        if slot.name == "table":
            return f"{self.random.randrange(256):#x}"
        if slot.name == "fraction":
            return self.random.choice(("0f3F800000", "0f3F000000", "0f3D000000"))
        if slot.is_address:
            return "[%b0]"
        literal = self.literal(t) if self.chance(0.15) and row.mnemonic not in _ONLY_REGISTERS else None
        if literal is not None:
            return literal if row.mnemonic not in _FIELDS or slot.type != "u32" else str(self.random.randrange(256))
        if t.kind == "predicate" and slot.type == "pred" and row.mnemonic not in ("selp", "lop3") and self.chance(0.3):
            return f"!{self.register(form, slot)}"
        return self.register(form, slot)

    # Instructions -----------------------------------------------------------------------------------------------

    def guard(self, probability: float = 0.12) -> str:
        """A guard, or nothing."""
        return f"@{self.random.choice(('', '!'))}{self.of_class('p')} " if self.chance(probability) else ""
