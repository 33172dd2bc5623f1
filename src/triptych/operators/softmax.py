"""Softmax along the rows of a matrix, and its logarithm."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import exponentials, narrow_sum, softmax
from triptych.operators.budgets import FUNCTION, UNIT, chain, rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Shape, inputs, standard, with_special
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def relative_error(x: Array) -> Array:
    """Of softmax along the last axis in f32, by element; the logarithm's absolute error.

    The argument of exp2 is x − largest, scaled by log2 e: 2 |x − largest| roundings, in the element's own power and in
    each of the sum's. The functions themselves, the sum (of positive terms) and the quotient come on top.
    """
    distance = np.abs(x - x.max(-1, keepdims=True))
    own = 2 * np.where(np.isfinite(distance), distance, 0) + 8
    return UNIT * (own + (softmax(x) * own).sum(-1, keepdims=True) + chain(x.shape[-1]) + 4)


def _softmax(given: Arrays, size: Values) -> Outputs:
    return (softmax(given["x"]),)


def _softmax_budget(case: Case) -> Outputs:
    return (rounding(case.truth, case.dtype) + relative_error(case.given["x"]) * case.truth,)


def _log_softmax(given: Arrays, size: Values) -> Outputs:
    _, total, largest = exponentials(given["x"])
    return (given["x"] - largest - np.log(total),)


def _log_budget(case: Case) -> Outputs:
    x = case.given["x"]
    _, total, largest = exponentials(x)
    logarithm = np.log(total)
    sum_error = (softmax(x) * relative_error(x)).sum(-1, keepdims=True) + FUNCTION * (1 + logarithm)
    differences = 2 * UNIT * (np.abs(case.truth) + np.abs(x - largest))
    return (rounding(case.truth, case.dtype) + sum_error + differences,)


def _without_maximum(case: Case) -> Array:
    return np.exp(case.given["x"].astype(np.float32))


def _masked(draw: Draw, shape: Shape) -> Array:
    """Normal values, of which the last third of every row is −∞, as a mask leaves them."""
    values = draw.random.standard_normal(shape)
    values[..., -(shape[-1] // 3) :] = -np.inf
    return values


def _columns(case: Case) -> Array:
    x = case.given["x"]
    return softmax(x.T).T


def _last_missing(x: Array) -> Array:
    """The sum of powers lacks the last one."""
    powers, total, _ = exponentials(x)
    return total - powers[..., -1:]


def _half_sum(case: Case) -> Array:
    powers, _, _ = exponentials(case.given["x"])
    return narrow_sum(powers, case.dtype)[..., None]


_SIZES = (
    Size("tiny", {"rows": 7, "columns": 77}, "rows that are no multiple of a vector"),
    Size("gpt2_vocabulary", {"rows": 1024, "columns": 50257}, "GPT-2: 1024 tokens, a vocabulary of 50257"),
    Size("llama_3_vocabulary", {"rows": 2048, "columns": 128256}, "Llama 3: 2048 tokens, a vocabulary of 128256"),
    Size(
        "vit_attention",
        {"rows": 12 * 197 * 16, "columns": 197},
        "ViT-B/16: scores of 12 heads, 197 tokens, 16 pictures",
    ),
)
_DISTRIBUTIONS = (
    *standard(degree=1),
    inputs("masked", "the last third of every row is −∞, as a mask leaves it", _masked),
    *with_special(),
)

SOFTMAX = Operator(
    name="softmax",
    computes="y[i, j] = exp(x[i, j]) / Σ_k exp(x[i, k])",
    family="reduction",
    inputs=(Parameter("x", "rows columns", "scores"),),
    outputs=(Parameter("y", "rows columns", "probabilities"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=_SIZES,
    distributions=_DISTRIBUTIONS,
    reference=_softmax,
    budget=_softmax_budget,
    derivation="relative to y: a rounding to T; 2 |x − max x| + 8 roundings of f32 in a power, as many on average in"
    " the sum; the sum of n positive terms; 4 for the quotient",
    flops=Formula("rows * (4 * columns - 1)"),
    wrong=(
        Wrong(
            "the maximum is not subtracted",
            lambda case: (_without_maximum(case) / _without_maximum(case).sum(-1, keepdims=True),),
        ),
        Wrong(
            "the last element is not summed up",
            lambda case: (exponentials(case.given["x"])[0] / _last_missing(case.given["x"]),),
        ),
        Wrong("along the columns", lambda case: (_columns(case),)),
        Wrong("sums in half precision", lambda case: (exponentials(case.given["x"])[0] / _half_sum(case),)),
    ),
)

LOG_SOFTMAX = Operator(
    name="log_softmax",
    computes="y[i, j] = x[i, j] − log Σ_k exp(x[i, k])",
    family="reduction",
    inputs=(Parameter("x", "rows columns", "scores"),),
    outputs=(Parameter("y", "rows columns", "logarithms of probabilities"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=_SIZES,
    distributions=_DISTRIBUTIONS,
    reference=_log_softmax,
    budget=_log_budget,
    derivation="a rounding to T; absolutely, the sum's relative error (as softmax's), a logarithm, and two"
    " roundings of x − max x and of the result",
    flops=Formula("rows * 4 * columns"),
    wrong=(
        Wrong(
            "the maximum is not subtracted",
            lambda case: (case.given["x"] - np.log(_without_maximum(case).sum(-1, keepdims=True)),),
        ),
        Wrong(
            "the logarithm of a rounded softmax",
            lambda case: (np.log(case.stored((softmax(case.given["x"]),))[0].astype(np.float64)),),
        ),
        Wrong(
            "the last element is not summed up",
            lambda case: (case.given["x"] - exponentials(case.given["x"])[2] - np.log(_last_missing(case.given["x"])),),
        ),
    ),
)
