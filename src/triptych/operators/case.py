"""A case: an operator at one size, type, distribution and seed, with inputs, float64 results and their budget."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from triptych.core.dtypes import DType
from triptych.core.errors import ArgumentError
from triptych.operators.budgets import limits
from triptych.operators.draw import Draw
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Values, is_integer, wide
from triptych.operators.verdict import Verdict, verdict_of


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs and what must come out. Budgets and wrong variants are functions of a case."""

    operator: Operator
    size: Values
    dtype: DType
    """T."""
    distribution: str
    inputs: Arrays
    """In the parameters' types, by name, in order."""
    given: Arrays
    """The same numbers, in float64 where they are not integers."""
    expected: Outputs
    """The reference's results in float64, or integers."""
    allowed: Outputs
    """The budget: an absolute error for each element."""

    @property
    def truth(self) -> Array:
        """The first output's expected values."""
        return self.expected[0]

    def stored(self, outputs: Outputs) -> Outputs:
        """Results, rounded to the outputs' types."""
        with np.errstate(all="ignore"):
            return tuple(
                np.asarray(values).astype(one.element(self.dtype).numpy)
                for values, one in zip(outputs, self.operator.outputs, strict=True)
            )

    def computed(self, size: Values | None = None, /, **changed: Array) -> Outputs:
        """What the reference makes of the inputs in f32: a right kernel's result, but for roundings of its own.

        Args:
            size: integers of the size that are to be others.
            changed: inputs that are to be others.
        """
        given = {name: _narrow(array) for name, array in (dict(self.given) | changed).items()}
        with np.errstate(all="ignore"):
            return self.operator.reference(given, {**self.size, **(size or {})})

    def shares(self, outputs: Outputs) -> Outputs:
        """Each element's error, as a multiple of what is allowed: infinite where NaN or an infinity is out of place.

        Args:
            outputs: results in the outputs' types and shapes.

        Raises:
            ArgumentError: where there are too many or too few, or one has another type or shape.
        """
        wanted = self.operator.outputs
        if len(outputs) != len(wanted):
            raise ArgumentError(f"{self.operator.name}: got {len(outputs)} outputs; expected {len(wanted)}")
        for found, one in zip(outputs, wanted, strict=True):
            kind, shape = one.element(self.dtype), one.shape(self.size)
            if found.dtype != kind.numpy or found.shape != shape:
                got = f"{found.dtype}{list(found.shape)}"
                raise ArgumentError(f"{self.operator.name}: {one.name} is {got}; expected {kind}{list(shape)}")
        kinds = [one.element(self.dtype) for one in wanted]
        return tuple(map(_shares, map(wide, outputs), self.expected, self.allowed, kinds))

    def error(self, outputs: Outputs) -> float:
        """The largest share: results are right where it is at most 1."""
        return max(float(one.max(initial=0.0)) for one in self.shares(outputs))

    def verdict(self, outputs: Outputs) -> Verdict:
        """Whether results are right, and which element is the worst: what to look at where they are not.

        Raises:
            ArgumentError: where there are too many or too few, or one has another type or shape.
        """
        names = [one.name for one in self.operator.outputs]
        return verdict_of(names, outputs, self.expected, self.allowed, self.shares(outputs))


def case(operator: Operator, size: str | Values, dtype: str, distribution: str, seed: int = 0) -> Case:
    """Makes a case. The same arguments make the same inputs.

    Args:
        operator: what is to be computed.
        size: a size's name, or the integers of one.
        dtype: T's name.
        distribution: a distribution's name.
        seed: of the random inputs.

    Raises:
        UnknownName: for a name that the operator has not.
    """
    values = operator.size(size).values if isinstance(size, str) else dict(size)
    inputs = draw_inputs(operator, size, dtype, distribution, seed)
    return of_inputs(operator, values, operator.dtype(dtype), distribution, inputs)


def draw_inputs(
    operator: Operator, size: str | Values, dtype: str, distribution: str, seed: int = 0
) -> dict[str, Array]:  # fmt: skip
    """The inputs of the case of these arguments, in the parameters' types, by name, in order.

    Raises:
        UnknownName: for a name that the operator has not.
    """
    values = operator.size(size).values if isinstance(size, str) else dict(size)
    kind, source = operator.dtype(dtype), operator.distribution(distribution)
    key = zlib.crc32(f"{operator.name}/{size}/{dtype}/{distribution}".encode())
    shapes = {one.name: one.shape(values) for one in operator.inputs}
    floats = tuple(one.name for one in operator.inputs if one.element(kind).is_float)
    drawn = source.make(Draw(np.random.default_rng([seed, key]), values, shapes, floats, kind))
    inputs: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for one in operator.inputs:
            array = np.asarray(drawn[one.name]).astype(one.element(kind).numpy)
            if array.shape != shapes[one.name]:
                raise ValueError(f"{operator.name}, {distribution}: {one.name} has the shape {array.shape}")
            inputs[one.name] = array
    return inputs


def of_inputs(operator: Operator, size: Values, dtype: DType, distribution: str, inputs: Arrays) -> Case:
    """A case of inputs that are there already, in the parameters' types."""
    given = {name: wide(array) for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        expected = tuple(operator.reference(given, size))
        bare = Case(operator, size, dtype, distribution, inputs, given, expected, ())
        return replace(bare, allowed=tuple(np.asarray(one, np.float64) for one in operator.budget(bare)))


def _narrow(array: Array) -> Array:
    return array if is_integer(array) else array.astype(np.float32)


def _shares(found: Array, expected: Array, allowed: Array, dtype: DType) -> Array:
    if not dtype.is_float:
        return np.where(found == expected, 0.0, np.inf)
    finite = np.isfinite(expected)
    if not np.isfinite(allowed[finite]).all() or not (allowed[finite] >= 0).all():
        raise ValueError("a budget is no number where the result is one")
    with np.errstate(all="ignore"):
        off = np.abs(found - expected)
        share = np.where(off == 0, 0.0, off / allowed)
        reach = np.abs(expected) + allowed >= limits(dtype).largest
        overflows = np.isinf(found) & (np.sign(found) == np.sign(expected)) & reach
    same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (finite & overflows)
    return np.where(same, 0.0, np.where(finite & np.isfinite(found), share, np.inf))
