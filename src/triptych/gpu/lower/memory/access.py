"""What a memory helper does, and its name: `triptych.load.global.4x2` loads two neighbouring elements of 4 bytes."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.hardware import PAIR_BYTES, SECTOR_BYTES
from triptych.gpu.isa.asynchronous.mbarrier_object import operands_of
from triptych.gpu.isa.spaces import Space
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.lower.primitives.emitter import I32, POINTER, VOID, vector
from triptych.gpu.lower.watching.layout import watched_name

SECTOR_SHIFT = SECTOR_BYTES.bit_length() - 1
"""From an address to the number of its sector."""
PAIR_SHIFT = PAIR_BYTES.bit_length() - 1
"""From an address to the number of its pair of sectors."""


@dataclass(frozen=True, slots=True)
class HelperAccess:
    """What a helper does: `kind` is load, store, or an atomic's operation."""

    kind: str
    space: Space
    size: int
    """Bytes of an element."""
    count: int = 1
    number: str = ""
    """How an atomic reads an element: `s` as a signed integer, `f32` … as a float; as an unsigned integer if empty."""
    watched: bool = False
    """Whether asynccheck follows the phases of the mbarrier that it changes."""

    @property
    def name(self) -> str:
        """The helper's symbol."""
        name = f"triptych.{self.kind}.{self.space}.{self.size}x{self.count}{self.number}"
        return watched_name(name) if self.watched else name

    @property
    def is_atomic(self) -> bool:
        """Whether it reads, changes and writes."""
        return self.kind not in ("load", "store")

    @property
    def bytes(self) -> int:
        """Bytes of one lane."""
        return self.size * self.count

    @property
    def element(self) -> ir.IntType:
        """The element's type in generated code."""
        return ir.IntType(8 * self.size)

    @property
    def operands(self) -> int:
        """Value operands."""
        if self.is_atomic:
            return operands_of(self.kind, self.count)
        return self.count if self.kind == "store" else 0

    @property
    def results(self) -> int:
        """Result vectors."""
        return 0 if self.kind == "store" else self.count

    @property
    def result_type(self) -> ir.Type:
        """Nothing, a vector, or a structure of vectors."""
        one = vector(self.element)
        return VOID if not self.results else one if self.results == 1 else ir.LiteralStructType([one] * self.results)

    @property
    def address_type(self) -> ir.IntType:
        """The type of an address."""
        return ir.IntType(self.space.address_bits)

    @property
    def function_type(self) -> ir.FunctionType:
        """(context, site, mask, addresses, values…) -> results."""
        values = [vector(self.element)] * self.operands
        return ir.FunctionType(self.result_type, [POINTER, POINTER, I32, vector(self.address_type), *values])


def atomic_access(operation: str, space: Space, t: ScalarType, count: int) -> HelperAccess:
    """Atomic operations on `count` neighbouring elements of a type."""
    number = t.name if t.is_float else "s" if t.is_signed else ""
    return HelperAccess(operation, space, t.bytes, count, number)
