"""The sum of each row."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_sum
from triptych.operators.budgets import rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard, with_special
from triptych.operators.formula import Formula
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["x"].sum(-1),)


def _budget(case: Case) -> Outputs:
    return (rounding(case.truth, case.dtype) + sums(np.abs(case.given["x"]).sum(-1), case.size["columns"]),)


def _along_columns(case: Case) -> Outputs:
    return (np.resize(case.given["x"].sum(0), case.size["rows"]),)


REDUCE_SUM = Operator(
    name="reduce_sum",
    computes="y[i] = Σ_j x[i, j]",
    family="reduction",
    inputs=(Parameter("x", "rows columns", "terms"),),
    outputs=(Parameter("y", "rows", "the rows' sums"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 33, "columns": 301}, "rows that are no multiple of a vector"),
        Size("one_row", {"rows": 1, "columns": 4096}, "blocks must meet"),
        Size("llama_3_8b_tokens", {"rows": 2048, "columns": 4096}, "Llama 3 8B: hidden size 4096, 2048 tokens"),
        Size("gradient_norm", {"rows": 1, "columns": 1 << 26}, "a flat array beyond any cache"),
    ),
    distributions=(*standard(degree=1), POSITIVE, *with_special()),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, and as many roundings of f32 as there are columns, relative to Σ |x|, in any order",
    flops=Formula("rows * (columns - 1)"),
    wrong=(
        Wrong("the last element is missing", lambda case: (case.given["x"][:, :-1].sum(-1),)),
        Wrong("the first element is counted twice", lambda case: (case.truth + case.given["x"][:, 0],)),
        Wrong("sums in half precision", lambda case: (narrow_sum(case.given["x"], case.dtype),)),
        Wrong("along the columns", _along_columns),
    ),
)
