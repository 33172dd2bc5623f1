"""Judges outputs by the operator's error budget: every element counts, and NaN stands for nothing but NaN."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import ArgumentError
from triptych.core.handles import Handle
from triptych.judge.execution.request import Ran
from triptych.judge.stable_numbers import COMPARED_DIGITS, EXPECTED_DIGITS, to_digits
from triptych.judge.verdict import Counterexample
from triptych.judge.verification.trials import Trial
from triptych.operators.case import Case
from triptych.operators.operator import Outputs, Parameter, wide

_SHOWN = 4
"""Elements of an input that a counterexample shows along each axis that the output has not."""


def arrays_of(outputs: Sequence[bytes], handles: Sequence[Handle]) -> Outputs:
    """Outputs' bytes as arrays of their types and shapes."""
    pairs = zip(outputs, handles, strict=True)
    return tuple(np.frombuffer(data, one.dtype.numpy).reshape(one.shape) for data, one in pairs)


def wrong_shape(case: Case, handles: Sequence[Handle]) -> str | None:
    """What is wrong with the number, types and shapes of a plan's outputs; None where nothing is."""
    try:
        case.shares(tuple(np.zeros(one.shape, one.dtype.numpy) for one in handles))
    except ArgumentError as error:
        return error.message
    return None


def changed_input(trial: Trial, ran: Ran) -> str | None:
    """The first input that holds something else after a run than before; None where none does."""
    for name, data in trial.inputs.items():
        if ran.inputs[name] != hashlib.sha256(data).hexdigest():
            return name
    return None


def is_right(case: Case, outputs: Outputs) -> bool:
    """Whether every element of every output is within the budget."""
    return case.error(outputs) <= 1


def counterexample(trial: Trial, outputs: Outputs) -> Counterexample | None:
    """The first element that is wrong; None where all are right."""
    case = trial.case
    rows = zip(case.operator.outputs, outputs, case.shares(outputs), strict=True)
    for place, (parameter, found, shares) in enumerate(rows):
        wrong = ~(shares <= 1)
        if not wrong.any():
            continue
        index = tuple(int(one) for one in np.unravel_index(int(wrong.argmax()), wrong.shape))
        allowed = float(case.allowed[place][index]) if found.dtype.kind not in "iub" else 0.0
        return Counterexample(
            size=dict(case.size),
            distribution=case.distribution,
            seed=trial.seed,
            output=parameter.name,
            index=index,
            got=float(wide(found)[index]),
            expected=to_digits(float(case.expected[place][index]), EXPECTED_DIGITS),
            allowed=to_digits(allowed, COMPARED_DIGITS),
            wrong_elements=int(wrong.sum()),
            elements=wrong.size,
            around=_around(case, parameter, index),
        )
    return None


def holds_undefined(outputs: Outputs, wrong: Counterexample, case: Case, byte: int | None) -> bool:
    """Whether a wrong element consists of nothing but a byte that undefined memory held."""
    place = [one.name for one in case.operator.outputs].index(wrong.output)
    return set(np.asarray(outputs[place][wrong.index]).tobytes()) == {byte}


def _around(case: Case, output: Parameter, index: tuple[int, ...]) -> Mapping[str, str]:
    """Of each input the elements at the output's place along the axes that both have, a few along the others."""
    at = dict(zip(output.axes.split(), index, strict=True))
    shown: dict[str, str] = {}
    for one in case.operator.inputs:
        array: NDArray[Any] = case.inputs[one.name]
        axes = one.axes.split()
        places = [at.get(axis, slice(_SHOWN)) for axis in axes]
        inside = [isinstance(place, slice) or place < extent for place, extent in zip(places, array.shape, strict=True)]
        if all(inside):
            where = ", ".join(":" if isinstance(place, slice) else str(place) for place in places)
            values = np.array2string(wide(array)[tuple(places)], threshold=4 * _SHOWN, precision=9, separator=", ")
            shown[f"{one.name}[{where}]"] = " ".join(values.split())
    return shown
