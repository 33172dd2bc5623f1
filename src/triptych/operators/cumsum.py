"""The sums of each row's elements up to each of them."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import NARROW
from triptych.operators.budgets import UNIT, chain, rounding
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard, with_special
from triptych.operators.formula import Formula
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (np.cumsum(given["x"], -1),)


def _budget(case: Case) -> Outputs:
    absolute = np.cumsum(np.abs(case.given["x"]), -1)
    roundings = np.array([chain(terms + 1) for terms in range(case.size["columns"])])
    return (rounding(case.truth, case.dtype) + UNIT * roundings * absolute,)


def _by_parts(case: Case) -> Outputs:
    """What the parts before come to is not carried along."""
    x = case.given["x"]
    part = 64
    return (np.concatenate([np.cumsum(x[:, at : at + part], -1) for at in range(0, x.shape[1], part)], -1),)


def _half_sums(case: Case) -> Outputs:
    x, kind = case.given["x"], NARROW[case.dtype.name]
    result, total = np.empty_like(x), np.zeros(len(x), kind)
    for place in range(x.shape[1]):
        total = (total + x[:, place].astype(kind)).astype(kind)
        result[:, place] = total
    return (result,)


CUMSUM = Operator(
    name="cumsum",
    computes="y[i, j] = Σ_{k ≤ j} x[i, k]",
    family="scan",
    inputs=(Parameter("x", "rows columns", "terms"),),
    outputs=(Parameter("y", "rows columns", "sums, each with its own element"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 5, "columns": 203}, "rows that are no multiple of a vector"),
        Size("one_row", {"rows": 1, "columns": 4096}, "blocks must meet"),
        Size("llama_3_vocabulary", {"rows": 64, "columns": 128256}, "Llama 3: probabilities to draw from, 64 requests"),
        Size("long", {"rows": 1, "columns": 1 << 24}, "one scan, beyond any cache"),
    ),
    distributions=(*standard(degree=1), POSITIVE, *with_special()),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, and for a sum of k terms k roundings of f32 relative to Σ |x|, in any order",
    flops=Formula("rows * (columns - 1)"),
    wrong=(
        Wrong("without the element itself", lambda case: (case.truth - case.given["x"],)),
        Wrong("parts of a row by themselves", _by_parts),
        Wrong("sums in half precision", _half_sums),
        Wrong("along the columns", lambda case: (np.cumsum(case.given["x"], 0),)),
    ),
)
