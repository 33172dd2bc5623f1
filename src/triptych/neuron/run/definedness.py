"""Which elements of an instruction's outputs are defined, given those of its inputs: undefined data spreads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.row import Flow

Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
FlagsByName = Mapping[str, Flags]


def _rows(flags: Flags) -> Flags:
    return flags.reshape(flags.shape[0] if flags.ndim else 1, -1)


def _elementwise(inputs: FlagsByName, shape: Shape) -> Flags:
    result = np.ones(shape, np.bool_)
    for flags in inputs.values():
        whole = flags.size == result.size
        spread = flags.reshape(shape) if whole else np.broadcast_to(_rows(flags), _rows(result).shape).reshape(shape)
        np.logical_and(result, spread, out=result)
    return result


def _reduction(inputs: FlagsByName, shape: Shape) -> Flags:
    data = inputs["data"]
    if data.size == np.prod(shape):
        return _elementwise(inputs, shape)
    reduced = np.asarray(data.reshape(int(np.prod(shape)), -1).all(axis=-1)).reshape(shape)
    return _elementwise({**inputs, "data": reduced}, shape)


def _contraction(inputs: FlagsByName, shape: Shape) -> Flags:
    stationary = np.asarray(_rows(inputs["stationary"]).all(axis=0))
    moving = np.asarray(_rows(inputs["moving"]).all(axis=0))
    return (stationary[:, np.newaxis] & moving).reshape(shape)


def _transposition(inputs: FlagsByName, shape: Shape) -> Flags:
    return _rows(inputs["data"]).T.reshape(shape)


def _constant(inputs: FlagsByName, shape: Shape) -> Flags:
    del inputs
    return np.ones(shape, np.bool_)


_FLOWS: Mapping[Flow, Callable[[FlagsByName, Shape], Flags]] = {
    Flow.ELEMENTWISE: _elementwise,
    Flow.REDUCTION: _reduction,
    Flow.CONTRACTION: _contraction,
    Flow.TRANSPOSITION: _transposition,
    Flow.CONSTANT: _constant,
}


def propagate(flow: Flow, inputs: Mapping[str, tuple[Flags | None, Shape]], shape: Shape) -> Flags | None:
    """The flags of an output of `shape`; None where every input is defined everywhere (a None of its own)."""
    if all(flags is None for flags, _ in inputs.values()):
        return None
    filled = {name: np.ones(size, np.bool_) if flags is None else flags for name, (flags, size) in inputs.items()}
    result = _FLOWS[flow](filled, shape)
    return None if result.all() else result
