"""Matrix descriptors as code works with them: the numbers of `isa/tensor/matrix_descriptors.py`."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import Emitter, constant


class Word:
    """A `Number` that code works out: an i64, or several at once."""

    def __init__(self, e: Emitter, value: ir.Value) -> None:
        """Emits with `e`."""
        self.e = e
        self.value = value

    def _with(self, operation: Callable[[ir.Value, ir.Value], ir.Value], other: Word | int) -> Word:
        values = [self.value, constant(other) if isinstance(other, int) else other.value]
        counts = [value.type.count for value in values if isinstance(value.type, ir.VectorType)]
        if counts:
            values = [v if isinstance(v.type, ir.VectorType) else self.e.splat(v, counts[0]) for v in values]
        return Word(self.e, operation(*values))

    def __add__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.add, other)

    def __mul__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.mul, other)

    def __and__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.and_, other)

    def __xor__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.xor, other)

    def __lshift__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.shl, other)

    def __rshift__(self, other: Word | int, /) -> Word:
        """See `Number`."""
        return self._with(self.e.b.lshr, other)

    def __rlshift__(self, other: int, /) -> Word:
        """See `Number`."""
        return Word(self.e, constant(other)) << self
