"""C = A × B for each of a batch."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_product, pick
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard
from triptych.operators.formula import Formula
from triptych.operators.matmul import product_error
from triptych.operators.operator import NOTHING, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["a"] @ given["b"],)


def _budget(case: Case) -> Outputs:
    return (rounding(case.truth, case.dtype) + product_error(*pick(case.given, "a b")),)


BATCHED_MATMUL = Operator(
    name="batched_matmul",
    computes="c[i] = a[i] × b[i]",
    family="product",
    inputs=(
        Parameter("a", "batch m k", "left matrices, by rows"),
        Parameter("b", "batch k n", "right matrices, by rows"),
    ),
    outputs=(Parameter("c", "batch m n", "products, summed up in f32"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"batch": 3, "m": 16, "n": 24, "k": 64}, "multiples of 8"),
        Size("ragged", {"batch": 3, "m": 17, "n": 11, "k": 45}, "no multiples of anything"),
        Size("bert_scores", {"batch": 16 * 12, "m": 512, "n": 512, "k": 64}, "BERT base: 12 heads, 16 texts of 512"),
        Size("bert_values", {"batch": 16 * 12, "m": 512, "n": 64, "k": 512}, "BERT base: 12 heads, 16 texts of 512"),
    ),
    distributions=(*standard(), POSITIVE),
    reference=_reference,
    budget=_budget,
    derivation="as matmul's: a rounding to T, and k + 1 roundings of f32 relative to Σ |a| |b|",
    flops=NOTHING,
    matrix_flops=Formula("batch * 2 * m * n * k"),
    may_do_less="Strassen's products",
    wrong=(
        Wrong("the first matrix b for all", lambda case: (case.given["a"] @ case.given["b"][:1],)),
        Wrong("the last product is missing", lambda case: (case.given["a"][..., :-1] @ case.given["b"][:, :-1],)),
        Wrong(
            "sums in half precision",
            lambda case: (narrow_product(case.given["a"], case.given["b"], case.dtype),),
        ),
        Wrong("the batch's matrices b are one late", lambda case: case.computed(b=np.roll(case.given["b"], 1, 0))),
    ),
)
