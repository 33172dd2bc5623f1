"""Which elements of an instruction's outputs are defined, given those of its inputs: undefined data spreads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.neuron.isa.row import Attributes, Flow, Row, Values

Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
FlagsByName = Mapping[str, Flags]
InputsByName = Mapping[str, NDArray[Any] | float]


def _rows(flags: Flags) -> Flags:
    return flags.reshape(flags.shape[0] if flags.ndim else 1, -1)


def _fit(flags: Flags, shape: Shape) -> Flags:
    """The flags of an input for an output of `shape`: those of what was reduced joined, a column's repeated."""
    size = prod(shape)
    if flags.size >= size:
        return np.asarray(flags.reshape(size, -1).all(axis=-1)).reshape(shape)
    return np.broadcast_to(_rows(flags), (shape[0], size // shape[0])).reshape(shape)


def _elementwise(inputs: FlagsByName, shape: Shape) -> Flags:
    return np.logical_and.reduce([_fit(flags, shape) for flags in inputs.values()])


def _prefix(inputs: FlagsByName, shape: Shape) -> Flags:
    return np.logical_and.accumulate(_rows(_elementwise(inputs, shape)), axis=1).reshape(shape)


def _partition(inputs: FlagsByName, shape: Shape) -> Flags:
    whole = np.logical_and.reduce([_rows(flags).all(axis=1) for flags in inputs.values()])
    return _fit(whole[:, np.newaxis], shape)


def _column(inputs: FlagsByName, shape: Shape) -> Flags:
    return np.logical_and.reduce([_rows(flags).all(axis=0) for flags in inputs.values()]).reshape(shape)


def _contraction(inputs: FlagsByName, shape: Shape) -> Flags:
    stationary = np.asarray(inputs["stationary"].reshape(-1, shape[0]).all(axis=0))
    moving = np.asarray(inputs["moving"].reshape(-1, prod(shape[1:])).all(axis=0))
    return (stationary[:, np.newaxis] & moving).reshape(shape)


def _constant(inputs: FlagsByName, shape: Shape) -> Flags:
    del inputs
    return np.ones(shape, np.bool_)


_FLOWS: Mapping[Flow, Callable[[FlagsByName, Shape], Flags]] = {
    Flow.ELEMENTWISE: _elementwise,
    Flow.PREFIX: _prefix,
    Flow.PARTITION: _partition,
    Flow.COLUMN: _column,
    Flow.CONTRACTION: _contraction,
    Flow.CONSTANT: _constant,
}


@dataclass(frozen=True, slots=True)
class Given:
    """What an instruction was given: its inputs, numbers too, their flags, and the shapes and dtypes of all tiles."""

    values: InputsByName
    flags: Mapping[str, Flags | None]
    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, DType]


def _selection(row: Row, attributes: Attributes, given: Given, inputs: FlagsByName) -> Flags:
    """The flags of `dst`: those of the element that the meaning takes, where what selects it is defined."""
    selecting = {rule.name for rule in row.operands if rule.selects}
    moved = {one: value if one in selecting else inputs.get(one, 1.0) for one, value in given.values.items()}
    made = row.meaning(Values(moved, given.shapes, given.dtypes), attributes)["dst"]
    shape = given.shapes["dst"]
    taken = np.asarray(made != 0).reshape(shape)
    return np.logical_and.reduce([taken, *(_fit(inputs[one], shape) for one in selecting if one in inputs)])


def flags_of_meeting(flags: Mapping[str, Flags | None], shapes: Mapping[str, Shape]) -> Mapping[str, Flags]:
    """The flags of all inputs, as arrays."""
    return {name: np.ones(shapes[name], np.bool_) if one is None else one for name, one in flags.items()}


def propagate(row: Row, attributes: Attributes, given: Given, name: str) -> Flags | None:
    """The flags of the output `name`; None where every input is defined everywhere.

    An instruction that only moves data moves the flags in the same way.
    """
    if all(flags is None for flags in given.flags.values()):
        return None
    shapes = given.shapes
    filled = {one: np.ones(shapes[one], np.bool_) if flags is None else flags for one, flags in given.flags.items()}
    if row.flow is Flow.MOVEMENT:
        result = row.meaning(Values(filled, shapes, given.dtypes), attributes)[name].reshape(shapes[name])
    elif row.flow is Flow.SELECTION:
        result = _fit(_selection(row, attributes, given, filled), shapes[name])
    else:
        result = _FLOWS[row.flow](filled, shapes[name])
    return None if result.all() else result
