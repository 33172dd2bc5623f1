"""The arithmetic-logic operations that the Vector, GPSIMD and Scalar engines apply to elements: what `op=` may name.

Source: the operator table of the NKI ISA reference (nki.api.shared). Division and modulo are absent from it: no engine
has them, and verification refuses them; they are here for traces that are lenient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine

Binary = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


class AluKind(Enum):
    """`ARITHMETIC` operations compute in float32, `BITVEC` operations on raw bits of integers."""

    ARITHMETIC = "arithmetic"
    BITVEC = "bitvec"


@dataclass(frozen=True, slots=True)
class AluOperation:
    """One operation: its meaning on two arrays of one dtype, and the engines that have it."""

    name: str
    kind: AluKind
    meaning: Binary
    engines: tuple[Engine, ...]
    reduces: bool = False
    """Whether a reduction may use it."""
    shifts: bool = False
    """Whether the second operand is an amount to shift by."""
    unary: bool = False
    """Whether the second operand means nothing."""
    core_generation: int = 2
    """The first generation of NeuronCore that has it."""
    instead: str = ""
    """Of an operation that NKI names and no engine has, what to do instead; AWS's simulator computes it."""


def _truth(function: Binary) -> Binary:
    """A comparison gives 1 or 0 in the dtype of its operands."""
    return lambda left, right: function(left, right).astype(left.dtype)


def _nonzero(function: Binary) -> Binary:
    return lambda left, right: function(left != 0, right != 0).astype(left.dtype)


def _power(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    return np.power(left.astype(np.float64), right.astype(np.float64)).astype(np.float32)


def _reciprocal_root(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    return np.broadcast_to(1.0 / np.sqrt(left.astype(np.float64)), np.broadcast_shapes(left.shape, right.shape)).astype(
        np.float32
    )


def _shift(function: Binary) -> Binary:
    """Logical shifts of the raw bits; amounts of the width or more give 0."""

    def shifted(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        bits = left.dtype.itemsize * 8
        unsigned = np.dtype(f"u{left.dtype.itemsize}")
        amount = right.astype(np.int64)
        safe = np.clip(amount, 0, bits - 1).astype(unsigned)
        moved = function(left.view(unsigned), safe)
        return np.where((amount >= 0) & (amount < bits), moved, 0).astype(unsigned).view(left.dtype)

    return shifted


def _unary(function: Callable[[NDArray[Any]], NDArray[Any]]) -> Binary:
    """An operation whose second operand means nothing."""
    return lambda left, right: np.broadcast_to(function(left), np.broadcast_shapes(left.shape, right.shape))


def _one_over(values: NDArray[Any]) -> NDArray[Any]:
    return np.float32(1.0) / values


def _relu(values: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(values, np.float32(0.0))


def _largest_magnitude(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(np.abs(left), np.abs(right))


def _least_magnitude(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    return np.minimum(np.abs(left), np.abs(right))


_BY_RECIPROCAL = "multiply by nl.reciprocal(y), or by 1 / y where y is a Python number"
_NO_MODULO = "no engine has a modulo: compute x - y *"
_FROM = "from reciprocal, multiply and subtract"
_ALL = (Engine.VECTOR, Engine.GPSIMD, Engine.SCALAR)
_DVE = (Engine.VECTOR, Engine.GPSIMD)
_BITS = (Engine.VECTOR,)


def _operations() -> Mapping[str, AluOperation]:
    arithmetic, bitvec = AluKind.ARITHMETIC, AluKind.BITVEC
    rows = [
        AluOperation("add", arithmetic, np.add, _ALL, True),
        AluOperation("multiply", arithmetic, np.multiply, _ALL, True),
        AluOperation("subtract", arithmetic, np.subtract, _DVE, True),
        AluOperation("maximum", arithmetic, np.maximum, _DVE, True),
        AluOperation("minimum", arithmetic, np.minimum, _DVE, True),
        AluOperation("equal", arithmetic, _truth(np.equal), _DVE),
        AluOperation("not_equal", arithmetic, _truth(np.not_equal), _DVE),
        AluOperation("less", arithmetic, _truth(np.less), _DVE),
        AluOperation("less_equal", arithmetic, _truth(np.less_equal), _DVE),
        AluOperation("greater", arithmetic, _truth(np.greater), _DVE),
        AluOperation("greater_equal", arithmetic, _truth(np.greater_equal), _DVE),
        AluOperation("logical_and", arithmetic, _nonzero(np.logical_and), _DVE, True),
        AluOperation("logical_or", arithmetic, _nonzero(np.logical_or), _DVE, True),
        AluOperation("logical_xor", arithmetic, _nonzero(np.logical_xor), _DVE, True),
        AluOperation("divide", arithmetic, np.divide, _DVE, instead=_BY_RECIPROCAL),
        AluOperation("mod", arithmetic, np.mod, _DVE, instead=f"{_NO_MODULO} floor(x / y) {_FROM}"),
        AluOperation("fmod", arithmetic, np.fmod, _DVE, instead=f"{_NO_MODULO} trunc(x / y) {_FROM}"),
        AluOperation("power", arithmetic, _power, (Engine.GPSIMD,)),
        AluOperation("rsqrt", arithmetic, _reciprocal_root, (Engine.GPSIMD, Engine.SCALAR), unary=True),
        AluOperation("abs", arithmetic, _unary(np.abs), _DVE, unary=True),
        AluOperation("reciprocal", arithmetic, _unary(_one_over), _DVE, unary=True),
        AluOperation("square", arithmetic, _unary(np.square), _DVE, unary=True, core_generation=4),
        AluOperation("relu", arithmetic, _unary(_relu), _DVE, unary=True, core_generation=4),
        AluOperation("abs_max", arithmetic, _largest_magnitude, _DVE, core_generation=4),
        AluOperation("abs_min", arithmetic, _least_magnitude, _DVE, core_generation=4),
        AluOperation("invert", bitvec, _unary(np.invert), _BITS, unary=True),
        AluOperation("bitwise_and", bitvec, np.bitwise_and, _BITS, True),
        AluOperation("bitwise_or", bitvec, np.bitwise_or, _BITS, True),
        AluOperation("bitwise_xor", bitvec, np.bitwise_xor, _BITS, True),
        AluOperation("left_shift", bitvec, _shift(np.left_shift), _BITS, shifts=True),
        AluOperation("right_shift", bitvec, _shift(np.right_shift), _BITS, shifts=True),
    ]
    return {row.name: row for row in rows}


ALU: Mapping[str, AluOperation] = _operations()


def gives_bits(attributes: Mapping[str, object]) -> bool:
    """Whether the last operation that an instruction's attributes name is a bit operation: its result is no number."""
    named = (attributes.get(name) for name in ("op1", "op0", "op"))
    last = next((str(one) for one in named if one is not None), "")
    return last in ALU and ALU[last].kind is AluKind.BITVEC


ABSENT: Mapping[str, str] = {name: row.instead for name, row in ALU.items() if row.instead}
"""Operations that NKI names but no engine has, with what to do instead."""
