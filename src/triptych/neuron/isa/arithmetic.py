"""The arithmetic that the rows of several engines share: operations on tiles, reductions in order, and their FLOPs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa import compiled
from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.row import FloatingWork, Subject


def apply_alu(
    name: object,
    left: NDArray[Any],
    right: NDArray[Any],
    reverse: object = False,
    out: NDArray[np.float32] | None = None,
) -> NDArray[Any]:
    """One operation, on float32 or, for a bit operation, on raw bits: an immediate's as many as the tile's.

    `out`, where it has the result's shape and the operation can, gets the result and is returned.
    """
    operation = ALU[str(name)]
    meaning = operation.meaning
    if operation.kind is AluKind.ARITHMETIC:
        left, right = widen(left), widen(right)
    elif right.ndim == 0:
        right = _bits(right, left.dtype, amount=operation.shifts and not reverse)
    elif right.dtype.itemsize == left.dtype.itemsize:
        right = right.view(left.dtype)  # numpy would widen int32 and uint32 to int64
    first, second = (right, left) if reverse else (left, right)
    if out is not None and left.shape == out.shape and isinstance(meaning, np.ufunc) and left.dtype == out.dtype:
        return meaning(first, second, out=out)
    return meaning(first, second)


def _bits(immediate: NDArray[Any], dtype: np.dtype[Any], *, amount: bool) -> NDArray[Any]:
    """A whole number of at most 32 bits as the low bits of `dtype`; an `amount` to shift by is no bits and stays."""
    number = immediate.astype(np.int64)
    return number if amount else number.astype(f"u{dtype.itemsize}").view(dtype)


# Reductions whose order matters are accumulated element by element; no order changes the others' result.
_UFUNCS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def reduce_in_order(name: str, rows: NDArray[Any]) -> NDArray[Any]:
    """The last axis reduced from its first element to its last."""
    if ALU[name].kind is AluKind.ARITHMETIC:
        rows = widen(rows)
    if name in ("maximum", "minimum"):
        return _UFUNCS[name].reduce(rows, axis=-1)
    if name in ("add", "multiply") and rows.ndim == 2 and rows.size >= compiled.WORTHWHILE:
        return compiled.reduce_rows(name, rows)
    if name in _UFUNCS:
        return _UFUNCS[name].accumulate(rows, axis=-1)[..., -1]
    result = rows[..., 0]
    for index in range(1, rows.shape[-1]):
        result = ALU[name].meaning(result, rows[..., index])
    return result


def operations_work(*attributes: str) -> FloatingWork:
    """One FLOP for each element of `dst` and each named arithmetic operation that is there."""

    def flops(subject: Subject) -> int:
        named = [subject.instruction.attributes.get(attribute) for attribute in attributes]
        arithmetic = [name for name in named if name is not None and ALU[str(name)].kind is AluKind.ARITHMETIC]
        return subject.instruction.region("dst").size * len(arithmetic)

    return flops


def reduction_work(subject: Subject, attribute: str, operand: str, result: str) -> int:
    """One FLOP for each element of `operand` that is reduced into another, none for bit operations."""
    if ALU[str(subject.instruction.attributes[attribute])].kind is AluKind.BITVEC:
        return 0
    return subject.instruction.region(operand).size - subject.instruction.region(result).size
