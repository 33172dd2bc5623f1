"""Each row divided by the root of the mean of its squares."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_sum
from triptych.operators.budgets import FUNCTION, UNIT, chain, rounding
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

EPSILON = 1e-5


def _scaled(x: Array, mean: Array, weight: Array) -> Array:
    return x / np.sqrt(mean + x.dtype.type(EPSILON)) * weight


def _mean(x: Array) -> Array:
    return (x * x).mean(-1, keepdims=True)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_scaled(given["x"], _mean(given["x"]), given["weight"]),)


def _budget(case: Case) -> Outputs:
    relative = UNIT * (chain(case.size["columns"] + 1) / 2 + 4) + FUNCTION
    return (rounding(case.truth, case.dtype) + relative * np.abs(case.truth),)


def _half_sums(case: Case) -> Outputs:
    x = case.given["x"]
    mean = narrow_sum(x * x, case.dtype)[:, None] / x.shape[1]
    return (_scaled(x, mean, case.given["weight"]),)


def _centred(case: Case) -> Outputs:
    x = case.given["x"]
    return (_scaled(x, x.var(-1, keepdims=True), case.given["weight"]),)


def _one_short(case: Case) -> Outputs:
    x = case.given["x"]
    mean = (x[:, :-1] ** 2).sum(-1, keepdims=True) / x.shape[1]
    return (_scaled(x, mean, case.given["weight"]),)


RMS_NORM = Operator(
    name="rms_norm",
    computes="y[i, j] = x[i, j] / √(mean_k x[i, k]² + ε) · weight[j]",
    family="normalisation",
    inputs=(
        Parameter("x", "rows columns", "rows to scale"),
        Parameter("weight", "columns", "a factor for each column"),
    ),
    outputs=(Parameter("y", "rows columns", "scaled rows"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 6, "columns": 128}, "rows of whole vectors"),
        Size("ragged", {"rows": 5, "columns": 99}, "no multiples of anything"),
        Size("llama_3_8b", {"rows": 2048, "columns": 4096}, "Llama 3 8B: hidden size 4096, 2048 tokens"),
        Size("llama_3_70b", {"rows": 2048, "columns": 8192}, "Llama 3 70B: hidden size 8192, 2048 tokens"),
        Size("qwen_3_head", {"rows": 2048 * 32, "columns": 128}, "Qwen3 8B: queries of 32 heads of 128, 2048 tokens"),
    ),
    distributions=(*standard(), POSITIVE),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; relative to y, half of the columns + 1 roundings of f32 that a sum of squares may have"
    " (the root halves them), 16 for the root, 4 for quotient and products",
    flops=Formula("rows * (4 * columns + 2)"),
    wrong=(
        Wrong("ε is missing", lambda case: (case.given["x"] / np.sqrt(_mean(case.given["x"])) * case.given["weight"],)),
        Wrong("the mean is subtracted first", _centred),
        Wrong("sums in half precision", _half_sums),
        Wrong("the last square is missing", _one_short),
        Wrong("without the weight", lambda case: case.computed(weight=np.ones_like(case.given["weight"]))),
    ),
    constants={"epsilon": EPSILON},
)
