"""Python's operators on tiles, which Beta 1 has; `import nki` has none, and the tracer refuses them there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from triptych.languages.nki.tracing.indexing import IndexTile

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tensors import NkiTensor
    from triptych.languages.nki.tracing.tracer import Tracer

OPERATORS: Mapping[str, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power",
    "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
}  # fmt: skip
"""The language's names of the operators."""
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
STEERING = (
    "values of tensors cannot steer Python's `if` and loops while a kernel is traced: select elements with nl.where,"
    " branch on shapes, program ids and plain arguments"
)
"""What to do in the place of `if tile > 0`."""

Method = Callable[["TileOperators", object], "NkiTensor"]


def _operator(symbol: str) -> Method:
    def method(self: TileOperators, other: object) -> NkiTensor:
        if other is None and symbol in ("==", "!="):  # no operand of any instruction: whether something is there
            return NotImplemented
        if symbol == "+" and isinstance(other, IndexTile):
            return self.moving(other)
        return self.tracer.operate(symbol, self, other)

    return method


def _reversed(symbol: str) -> Method:
    def method(self: TileOperators, other: object) -> NkiTensor:
        if symbol == "+" and isinstance(other, IndexTile):
            return self.moving(other)
        return self.tracer.operate(symbol, other, self)

    return method


class TileOperators(ABC):
    """The operators, each by the tracer's `operate`."""

    __slots__ = ()

    tracer: Tracer
    """The trace that the tile belongs to."""

    @abstractmethod
    def moving(self, index: IndexTile) -> NkiTensor:
        """Beta 1's index `tile + nl.arange(…)`: one element of a tile moves an index tile."""

    __add__ = _operator("+")
    __radd__ = _reversed("+")
    __sub__ = _operator("-")
    __rsub__ = _reversed("-")
    __mul__ = _operator("*")
    __rmul__ = _reversed("*")
    __truediv__ = _operator("/")
    __rtruediv__ = _reversed("/")
    __pow__ = _operator("**")
    __rpow__ = _reversed("**")
    __hash__ = object.__hash__
    __eq__ = _operator("==")  # pyright: ignore[reportAssignmentType]  # a tile, as numpy's is an array
    __ne__ = _operator("!=")  # pyright: ignore[reportAssignmentType]
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __and__ = _operator("&")
    __rand__ = _reversed("&")
    __or__ = _operator("|")
    __ror__ = _reversed("|")
    __xor__ = _operator("^")
    __rxor__ = _reversed("^")
    __lshift__ = _operator("<<")
    __rlshift__ = _reversed("<<")
    __rshift__ = _operator(">>")
    __rrshift__ = _reversed(">>")
