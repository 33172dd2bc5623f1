"""One lane's atomic operation on host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from triptych.gpu.lower.emitter import DOUBLE, FLOAT, Emitter

if TYPE_CHECKING:
    from triptych.gpu.lower.memory.access import Access

_UNSIGNED: Mapping[str, str] = {
    "add": "add", "min": "umin", "max": "umax", "and": "and", "or": "or", "xor": "xor", "exch": "xchg",
    "inc": "uinc_wrap", "dec": "udec_wrap",
}  # fmt: skip
_SIGNED: Mapping[str, str] = _UNSIGNED | {"min": "min", "max": "max"}
_FLOAT: Mapping[str, str] = {"add": "fadd", "exch": "xchg"}


def update_element(e: Emitter, access: Access, place: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
    """Reads, changes and writes one element; gives the old bits."""
    if access.kind == "cas":
        pair = e.b.cmpxchg(place, operands[0], operands[1], "monotonic", "monotonic")
        return e.b.extract_value(pair, 0)
    names = _FLOAT if access.is_float else _SIGNED if access.is_signed else _UNSIGNED
    operation = names[access.kind]
    if operation != "fadd":
        return e.b.atomic_rmw(operation, place, operands[0], "monotonic")
    kind = DOUBLE if access.size == 8 else FLOAT
    old = e.b.atomic_rmw(operation, place, e.b.bitcast(operands[0], kind), "monotonic")
    return e.b.bitcast(old, access.element)
