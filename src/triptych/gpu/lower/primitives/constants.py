"""Constants of the code that is being emitted.

Types and constants do not change, and llvmlite keeps the text of each that it has written once: the same object for the
same value spares it a quarter of its work.
"""

from __future__ import annotations

from functools import cache, lru_cache

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE


@cache
def vector(element: ir.Type, lanes: int = WARP_SIZE) -> ir.VectorType:
    """A vector type."""
    return ir.VectorType(element, lanes)


class Splat(ir.Constant):
    """A vector constant with one value in every lane, which LLVM reads faster in its short form."""

    def __init__(self, kind: ir.VectorType, lane: ir.Constant) -> None:
        """`lane` is the value."""
        super().__init__(kind, lane)
        self.lane = lane

    def get_reference(self) -> str:
        """How the text of an instruction names it."""
        return f"splat ({self.lane})"


def number(kind: ir.Type, value: float) -> ir.Constant:
    """A constant; the same in every lane for a vector type."""
    return _whole(kind, value) if isinstance(value, int) else _make_number(kind, value)


def _make_number(kind: ir.Type, value: float) -> ir.Constant:
    if isinstance(kind, ir.VectorType):
        return Splat(kind, ir.Constant(kind.element, value))
    return ir.Constant(kind, value)


_whole = lru_cache(maxsize=1 << 14, typed=True)(_make_number)
"""Of integers alone: of floats, 0.0 and -0.0 are equal."""
