"""Which elements of an instruction's outputs are defined, given those of its inputs: undefined data spreads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    stationary = np.asarray(_rows(inputs["stationary"]).all(axis=0))
    moving = np.asarray(_rows(inputs["moving"]).all(axis=0))
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


def _selection(
    row: Row, attributes: Attributes, values: InputsByName, inputs: FlagsByName, shapes: Mapping[str, Shape]
) -> Flags:
    """The flags of `dst`: those of the element that the meaning takes, where what selects it is defined."""
    selecting = {rule.name for rule in row.operands if rule.selects}
    moved = {one: value if one in selecting else inputs.get(one, 1.0) for one, value in values.items()}
    taken = np.asarray(row.meaning(Values(moved, shapes), attributes)["dst"] != 0).reshape(shapes["dst"])
    return np.logical_and.reduce([taken, *(_fit(inputs[one], shapes["dst"]) for one in selecting)])


def propagate(
    row: Row,
    attributes: Attributes,
    values: InputsByName,
    inputs: Mapping[str, Flags | None],
    shapes: Mapping[str, Shape],
    name: str,
) -> Flags | None:
    """The flags of the output `name`; None where every input is defined everywhere (a None of its own).

    `values` are the inputs, numbers too, and `shapes` those of all tiles. An instruction that only moves data moves
    the flags in the same way.
    """
    if all(flags is None for flags in inputs.values()):
        return None
    filled = {one: np.ones(shapes[one], np.bool_) if flags is None else flags for one, flags in inputs.items()}
    if row.flow is Flow.MOVEMENT:
        result = row.meaning(Values(filled, shapes), attributes)[name].reshape(shapes[name])
    elif row.flow is Flow.SELECTION:
        result = _fit(_selection(row, attributes, values, filled, shapes), shapes[name])
    else:
        result = _FLOWS[row.flow](filled, shapes[name])
    return None if result.all() else result
