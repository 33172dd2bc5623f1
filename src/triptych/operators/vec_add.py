"""C = a + b."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import coarse
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import standard, with_special
from triptych.operators.formula import Formula
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["a"] + given["b"],)


def _budget(case: Case) -> Outputs:
    return (rounding(case.truth, case.dtype),)


def _last_missing(case: Case) -> Outputs:
    return (np.append(case.truth[:-1], 0),)


VEC_ADD = Operator(
    name="vec_add",
    computes="c[i] = a[i] + b[i]",
    family="elementwise",
    inputs=(Parameter("a", "n", "the first terms"), Parameter("b", "n", "the second terms")),
    outputs=(Parameter("c", "n", "the sums"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"n": 1000}, "no multiple of a block or of a vector"),
        Size("llama_3_8b_residual", {"n": 4096 * 2048}, "Llama 3 8B: hidden size 4096, a residual of 2048 tokens"),
        Size("stream", {"n": 1 << 26}, "STREAM's add, beyond any cache: 256 MiB an array in f32"),
    ),
    distributions=(*standard(degree=1), *with_special()),
    reference=_reference,
    budget=_budget,
    derivation="one rounding of the sum to T",
    flops=Formula("n"),
    wrong=(
        Wrong("the last element is missing", _last_missing),
        Wrong("b is subtracted", lambda case: (case.given["a"] - case.given["b"],)),
        Wrong("b is one element late", lambda case: case.computed(b=np.roll(case.given["b"], 1))),
        Wrong("sums rounded to bf16 first", lambda case: (coarse(case.truth, 8),), ("f32", "f16")),
    ),
)
