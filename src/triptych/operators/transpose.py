"""The mirror of a matrix."""

from __future__ import annotations

import numpy as np

from triptych.operators.case import Case
from triptych.operators.draw import standard, with_special
from triptych.operators.operator import NOTHING, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["x"].T,)


def _budget(case: Case) -> Outputs:
    return (np.zeros(case.truth.shape),)


def _diagonal_tile(case: Case) -> Outputs:
    """A tile in the middle is stored as it was loaded."""
    result = case.truth.copy()
    result[:8, :8] = result[:8, :8].T
    return (result,)


def _last_row(case: Case) -> Outputs:
    result = case.truth.copy()
    result[-1] = 0
    return (result,)


TRANSPOSE = Operator(
    name="transpose",
    computes="y[j, i] = x[i, j]",
    family="data movement",
    inputs=(Parameter("x", "rows columns", "the matrix"),),
    outputs=(Parameter("y", "columns rows", "its mirror"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 40, "columns": 72}, "multiples of 8"),
        Size("ragged", {"rows": 37, "columns": 53}, "no multiples of anything"),
        Size("llama_3_8b_gate", {"rows": 14336, "columns": 4096}, "Llama 3 8B: the gate's weights"),
        Size("square_8192", {"rows": 8192, "columns": 8192}, "rows a power of two apart: partitions and banks collide"),
    ),
    distributions=(*standard(degree=1), *with_special()),
    reference=_reference,
    budget=_budget,
    derivation="none: elements are copied, NaN and infinities too",
    flops=NOTHING,
    wrong=(
        Wrong("a copy, not mirrored", lambda case: (case.given["x"].reshape(case.truth.shape),)),
        Wrong("a tile is not mirrored", _diagonal_tile),
        Wrong("the last row is missing", _last_row),
    ),
)
