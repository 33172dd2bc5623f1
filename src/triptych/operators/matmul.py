"""C = A × B."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_product
from triptych.operators.budgets import rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard, with_special
from triptych.operators.formula import Formula
from triptych.operators.operator import NOTHING, Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def product_error(a: Array, b: Array) -> Array:
    """What sums of products in f32, in any order, may be off by: a dot product of k terms, each rounded once."""
    return sums(np.abs(a) @ np.abs(b), a.shape[-1] + 1)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["a"] @ given["b"],)


def _budget(case: Case) -> Outputs:
    return (rounding(case.truth, case.dtype) + product_error(case.given["a"], case.given["b"]),)


def _last_missing(case: Case) -> Outputs:
    return (case.given["a"][:, :-1] @ case.given["b"][:-1],)


def _half_sums(case: Case) -> Outputs:
    return (narrow_product(case.given["a"], case.given["b"], case.dtype),)


def _rows_of_b_shifted(case: Case) -> Outputs:
    return (case.given["a"] @ np.roll(case.given["b"], 1, 0),)


def _last_row_missing(case: Case) -> Outputs:
    result = case.truth.copy()
    result[-1] = 0
    return (result,)


SIZES = (
    Size("tiny", {"m": 32, "n": 48, "k": 64}, "multiples of a tensor core's tile"),
    Size("ragged", {"m": 37, "n": 29, "k": 53}, "no multiples of anything"),
    Size("llama_3_8b_gate", {"m": 2048, "n": 14336, "k": 4096}, "Llama 3 8B: gate projection of 2048 tokens"),
    Size("llama_3_70b_down", {"m": 2048, "n": 8192, "k": 28672}, "Llama 3 70B: down projection of 2048 tokens"),
    Size("llama_3_8b_decode", {"m": 1, "n": 4096, "k": 4096}, "Llama 3 8B: output projection of one token"),
    Size("square_4096", {"m": 4096, "n": 4096, "k": 4096}, "the size that libraries are measured at"),
)

MATMUL = Operator(
    name="matmul",
    computes="c[i, j] = Σ_k a[i, k] b[k, j]",
    family="product",
    inputs=(Parameter("a", "m k", "the left matrix, by rows"), Parameter("b", "k n", "the right matrix, by rows")),
    outputs=(Parameter("c", "m n", "the product, summed up in f32"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=SIZES,
    distributions=(*standard(), POSITIVE, *with_special()),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, and k + 1 roundings of f32 relative to Σ |a| |b|: one for each product, one"
    " for each sum, in any order",
    flops=NOTHING,
    matrix_flops=Formula("2 * m * n * k"),
    may_do_less="Strassen's products",
    wrong=(
        Wrong("the last product is missing", _last_missing),
        Wrong("sums in half precision", _half_sums),
        Wrong("rows of b are one off", _rows_of_b_shifted),
        Wrong("the last row is missing", _last_row_missing),
    ),
)
