"""A layer of experts: each token times the matrices of its experts, weighted and summed up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import narrow_product, pick
from triptych.operators.budgets import UNIT, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, inputs, normal, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _products(x: Array, w: Array, experts: Array) -> Array:
    """Of each token and each of its experts, `(tokens, top_k, n)`: those of an expert at a time."""
    products = np.empty((*experts.shape, w.shape[-1]), x.dtype)
    for expert, matrix in enumerate(w):
        tokens, places = np.nonzero(experts == expert)
        products[tokens, places] = x[tokens] @ matrix
    return products


def _reference(given: Arrays, size: Values) -> Outputs:
    x, w, experts, weights = pick(given, "x w chosen weights")
    return ((_products(x, w, experts) * weights[..., None]).sum(1),)


def _budget(case: Case) -> Outputs:
    x, w, experts, weights = pick(case.given, "x w chosen weights")
    d, top_k = case.size["d"], case.size["top_k"]
    products = _products(np.abs(x), np.abs(w), experts)
    weighted = (sums(products, d + 1) * weights[..., None]).sum(1)
    rounded = (np.abs(_products(x, w, experts)) * weights[..., None]).sum(1)
    share = UNIT * (top_k + 1) + (top_k > 0) * case_unit(case)
    return (rounding(case.truth, case.dtype) + weighted + share * rounded,)


def case_unit(case: Case) -> float:
    """Of T: an expert's product may be stored in T before it is weighted."""
    return float(rounding(np.ones(()), case.dtype))


def _weights(draw: Draw) -> Array:
    weights = draw.random.uniform(0.1, 1.0, draw.shapes["weights"])
    return weights / weights.sum(-1, keepdims=True)


def _any(draw: Draw) -> Mapping[str, Array]:
    """Any experts for each token, all of them for some."""
    tokens, top_k = draw.shapes["chosen"]
    experts = draw.size["experts"]
    chosen = np.argsort(draw.random.random((tokens, experts)), -1)[:, :top_k]
    return {"chosen": _with_all(chosen, experts), "weights": _weights(draw)}


def _skewed(draw: Draw) -> Mapping[str, Array]:
    """The last experts for nearly all tokens."""
    tokens, top_k = draw.shapes["chosen"]
    experts = draw.size["experts"]
    chosen = np.tile(np.arange(experts - top_k, experts), (tokens, 1))
    return {"chosen": _with_all(chosen, experts), "weights": _weights(draw)}


def _with_all(chosen: Array, experts: int) -> Array:
    """Every expert has a token, where there are enough: the first tokens take them in turn."""
    top_k = chosen.shape[1]
    first = chosen[: -(-experts // top_k)]
    first[:] = (np.arange(first.size) % experts).reshape(first.shape)
    return chosen


def _half_sums(case: Case) -> Outputs:
    x, w, experts, weights = pick(case.given, "x w chosen weights")
    products = narrow_product(x[:, None, None], w[experts], case.dtype)[:, :, 0]
    return ((products * weights[..., None]).sum(1),)


MOE_MATMUL = Operator(
    name="moe_matmul",
    computes="y[t] = Σ_j weights[t, j] (x[t] × w[chosen[t, j]])",
    family="experts",
    inputs=(
        Parameter("x", "tokens d", "tokens"),
        Parameter("w", "experts d n", "the experts' matrices, by rows", least="min(experts, tokens * top_k) * d * n"),
        Parameter("chosen", "tokens top_k", "each token's experts, all different", "s32"),
        Parameter("weights", "tokens top_k", "each expert's share", "f32"),
    ),
    outputs=(Parameter("y", "tokens n", "the layer's output"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"tokens": 19, "d": 64, "experts": 5, "n": 24, "top_k": 2}, "experts that no tile divides"),
        Size(
            "mixtral_8x7b",
            {"tokens": 2048, "d": 4096, "experts": 8, "n": 14336, "top_k": 2},
            "Mixtral 8x7B: the gate projection, 2 of 8 experts, 2048 tokens",
        ),
        Size(
            "qwen_3_30b_decode",
            {"tokens": 16, "d": 2048, "experts": 128, "n": 768, "top_k": 8},
            "Qwen3 30B-A3B: the gate projection, 8 of 128 experts, 16 tokens at once",
        ),
    ),
    distributions=(
        *standard(also=_any),
        inputs("skewed", "normal; nearly all tokens have the same experts", normal, _skewed),
    ),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; d + 1 roundings of f32 relative to each expert's Σ |x| |w|, weighted; relative to the"
    " weighted |products|: a rounding to T, as an expert's product may be stored before it is weighted, and top_k + 1"
    " of f32",
    flops=Formula("tokens * n * (2 * top_k - 1)"),
    matrix_flops=Formula("2 * tokens * top_k * d * n"),
    wrong=(
        Wrong(
            "the last expert is missing",
            lambda case: case.computed(
                weights=np.where(np.arange(case.size["top_k"]) == case.size["top_k"] - 1, 0, case.given["weights"])
            ),
        ),
        Wrong("experts are not weighted", lambda case: case.computed(weights=np.ones_like(case.given["weights"]))),
        Wrong("experts of the token before", lambda case: case.computed(chosen=np.roll(case.given["chosen"], 1, 0))),
        Wrong("sums in half precision", _half_sums),
    ),
)
