"""The registers of a random routine: by class, as PTX wants an operand's register to be declared (manual, 9.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.gpu.isa import Form, OperandSlot
from triptych.gpu.isa.types import ScalarType


@dataclass(frozen=True, slots=True)
class RegisterClass:
    """Registers of one declared type: `%r0` to `%r7`, say."""

    letter: str
    type: str
    bits: int
    count: int

    @property
    def names(self) -> tuple[str, ...]:
        """The registers."""
        return tuple(f"%{self.letter}{number}" for number in range(self.count))


CLASSES: Mapping[str, RegisterClass] = {
    one.letter: one
    for one in (
        RegisterClass("p", "pred", 1, 5), RegisterClass("h", "b16", 16, 8), RegisterClass("r", "b32", 32, 9),
        RegisterClass("f", "f32", 32, 6), RegisterClass("d", "b64", 64, 6), RegisterClass("e", "f64", 64, 4),
    )
}  # fmt: skip
"""Those whose values the kernels compute with; each of them ends in the output."""
PARTS: Mapping[int, str] = {16: "h", 32: "r"}
"""The class of the parts of a packed value, by their bits."""

HELPERS = (
    ".reg .pred %q<4>; .reg .b16 %w<2>; .reg .b32 %x<8>; .reg .b64 %y<4>; .reg .f32 %u<8>; .reg .f64 %v<4>;"
    " .reg .b32 %c<8>; .reg .b32 %t<4>; .reg .b64 %b<12>; .reg .b32 %s<2>;"
)
"""%q, %w, %x, %y, %u, %v: a statement's own. %c: loops. %t, %b, %s: places of the thread, set once."""


def declarations() -> str:
    """The directives that declare all registers."""
    own = " ".join(f".reg .{one.type} %{one.letter}<{one.count}>;" for one in CLASSES.values())
    return f"{own} {HELPERS}"


_WITHOUT_FLOATS = frozenset(("bmsk", "createpolicy", "redux"))
"""Instructions of bits for which `ptxas` takes no register of floats."""
_NEW_FORMATS = frozenset(("bf16", "tf32", "e4m3x2", "e5m2x2", "f16x2", "bf16x2"))
"""Conversions from and to them have registers of the type's own width (PTX manual, 9.7.9.21)."""


def classes_for(form: Form, slot: OperandSlot) -> tuple[str, ...]:
    """The classes whose registers an operand may be: at times also wider ones (PTX manual, 9.4.1)."""
    t = form.operand_type(slot)
    new = any(one.name in _NEW_FORMATS for one in form.types.values())
    letters = classes_of(t, wider=form.row.wider_registers and not new)
    return letters[:1] if form.row.mnemonic in _WITHOUT_FLOATS else letters


def classes_of(t: ScalarType, *, wider: bool = False) -> tuple[str, ...]:
    """The classes whose registers an operand of a type may be; `wider`: registers may be wider than the type."""
    if t.kind == "predicate":
        return ("p",)
    if t.name in ("f32", "f64"):
        return ("f",) if t.name == "f32" else ("e",)
    own = ({8: "h", 16: "h", 32: "r", 64: "d"}[t.bits],)
    if wider and not t.is_float:
        own += tuple(letter for letter in ("h", "r", "d") if CLASSES[letter].bits > t.bits and letter not in own)
    if t.name in ("b32", "b64"):
        own += ("f",) if t.name == "b32" else ("e",)
    return own
