"""Each row, its mean taken off, divided by its standard deviation."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_sum, pick
from triptych.operators.budgets import FUNCTION, UNIT, chain, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import OFFSET, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

EPSILON = 1e-5


def normalised(x: Array) -> tuple[Array, Array]:
    """The distances from the mean, and the reciprocal standard deviation, of each row."""
    distance = x - x.mean(-1, keepdims=True)
    return distance, 1 / np.sqrt((distance * distance).mean(-1, keepdims=True) + x.dtype.type(EPSILON))


def _reference(given: Arrays, size: Values) -> Outputs:
    distance, factor = normalised(given["x"])
    return (distance * factor * given["weight"] + given["bias"],)


def _budget(case: Case) -> Outputs:
    x, weight, bias = pick(case.given, "x weight bias")
    columns = case.size["columns"]
    distance, factor = normalised(x)
    away = sums(np.abs(x).sum(-1, keepdims=True), columns + 1) / columns + UNIT * np.abs(x)
    variance = 1 / factor**2
    slip = 2 * (np.abs(distance) * away).mean(-1, keepdims=True) + UNIT * chain(columns + 2) * variance
    relative = slip / variance / 2 + FUNCTION + 4 * UNIT
    error = np.abs(weight) * factor * (away + np.abs(distance) * relative)
    return (rounding(case.truth, case.dtype) + error + UNIT * (np.abs(case.truth) + np.abs(bias)),)


def _with_statistics(case: Case, mean: Array, variance: Array) -> Outputs:
    x, weight, bias = pick(case.given, "x weight bias")
    return ((x - mean) / np.sqrt(variance + EPSILON) * weight + bias,)


def _one_pass(case: Case) -> Outputs:
    x = case.given["x"].astype(np.float32)
    mean = x.mean(-1, keepdims=True)
    return _with_statistics(case, mean, np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0))


def _half_statistics(case: Case) -> Outputs:
    x = case.given["x"]
    mean = narrow_sum(x, case.dtype)[:, None] / x.shape[1]
    return _with_statistics(case, mean, x.var(-1, keepdims=True))


def _sample_variance(case: Case) -> Outputs:
    x = case.given["x"]
    return _with_statistics(case, x.mean(-1, keepdims=True), x.var(-1, keepdims=True, ddof=1))


LAYER_NORM = Operator(
    name="layer_norm",
    computes="y[i, j] = (x[i, j] − mean_k x[i, k]) / √(var_k x[i, k] + ε) · weight[j] + bias[j]",
    family="normalisation",
    inputs=(
        Parameter("x", "rows columns", "rows to normalise"),
        Parameter("weight", "columns", "a factor for each column"),
        Parameter("bias", "columns", "a term for each column"),
    ),
    outputs=(Parameter("y", "rows columns", "normalised rows"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 6, "columns": 128}, "rows of whole vectors"),
        Size("ragged", {"rows": 5, "columns": 99}, "no multiples of anything"),
        Size("gpt2", {"rows": 8 * 1024, "columns": 768}, "GPT-2: hidden size 768, 8 sequences of 1024 tokens"),
        Size("gpt2_xl", {"rows": 8 * 1024, "columns": 1600}, "GPT-2 XL: hidden size 1600, 8 sequences of 1024 tokens"),
    ),
    distributions=(*standard(), OFFSET),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; the mean's error (columns + 1 roundings of Σ |x|, over columns) and one of x, times"
    " |weight| / σ; relative to the distance, half of the variance's error (2 mean(|distance| error) and columns + 2"
    " roundings), 16 for the root and 4 for products; one for the bias",
    flops=Formula("rows * (7 * columns + 3)"),
    fused_flops=Formula("rows * 4 * columns"),
    wrong=(
        Wrong("variance as a difference of squares, in one pass", _one_pass, ("f32",)),
        Wrong("the mean summed up in half precision", _half_statistics),
        Wrong("the variance of a sample: over columns − 1", _sample_variance),
        Wrong(
            "ε is missing",
            lambda case: _with_statistics(
                case, case.given["x"].mean(-1, keepdims=True), case.given["x"].var(-1, keepdims=True) - EPSILON
            ),
        ),
        Wrong("without the bias", lambda case: case.computed(bias=np.zeros_like(case.given["bias"]))),
    ),
    constants={"epsilon": EPSILON},
)
