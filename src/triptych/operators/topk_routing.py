"""The experts of each token: the k largest scores, and softmax over these alone."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import coarse, softmax
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import close, inputs, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong
from triptych.operators.softmax import relative_error


def _largest(logits: Array, count: int) -> Array:
    """The columns of the largest scores, largest first, of equal ones the first."""
    return np.argsort(-logits, -1, kind="stable")[:, :count]


def _routed(logits: Array, chosen: Array) -> Outputs:
    return softmax(np.take_along_axis(logits, chosen, -1)), chosen


def _reference(given: Arrays, size: Values) -> Outputs:
    return _routed(given["logits"], _largest(given["logits"], size["top_k"]))


def _budget(case: Case) -> Outputs:
    chosen = np.take_along_axis(case.given["logits"], case.expected[1], -1)
    stored = case.operator.outputs[0].element(case.dtype)
    return rounding(case.truth, stored) + relative_error(chosen) * case.truth, np.zeros(case.expected[1].shape)


def _over_all(case: Case) -> Outputs:
    return np.take_along_axis(softmax(case.given["logits"]), case.expected[1], -1), case.expected[1]


def _last_of_equal(case: Case) -> Outputs:
    logits = case.given["logits"]
    chosen = logits.shape[1] - 1 - _largest(logits[:, ::-1], case.size["top_k"])
    return _routed(logits, chosen)


def _coarse_scores(case: Case) -> Outputs:
    logits = case.given["logits"]
    digits = {"f32": 11, "f16": 8, "bf16": 5}[case.dtype.name]
    return _routed(logits, _largest(coarse(logits, digits), case.size["top_k"]))


def _smallest_first(case: Case) -> Outputs:
    weights, chosen = case.expected
    return weights[:, ::-1], chosen[:, ::-1]


TOPK_ROUTING = Operator(
    name="topk_routing",
    computes="chosen[t] = the columns of the top_k largest logits[t], largest first, of equal ones the first;"
    " weights[t] = softmax(logits[t, chosen[t]])",
    family="experts",
    inputs=(Parameter("logits", "tokens experts", "the router's scores"),),
    outputs=(
        Parameter("weights", "tokens top_k", "each expert's share", "f32"),
        Parameter("chosen", "tokens top_k", "the experts", "s32"),
    ),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"tokens": 37, "experts": 40, "top_k": 4}, "more experts than lanes"),
        Size("mixtral_8x7b", {"tokens": 2048, "experts": 8, "top_k": 2}, "Mixtral 8x7B: 2 of 8 experts"),
        Size("qwen_3_30b", {"tokens": 2048, "experts": 128, "top_k": 8}, "Qwen3 30B-A3B: 8 of 128 experts"),
    ),
    distributions=(
        *standard(degree=1),
        inputs("close", "scores a few of T's steps apart, some of them equal", close),
    ),
    reference=_reference,
    budget=_budget,
    derivation="experts: none, scores are compared as they are. Weights: a rounding to f32, and softmax's relative"
    " error",
    flops=Formula("tokens * (4 * top_k - 3)"),
    wrong=(
        Wrong("softmax over all experts", _over_all),
        Wrong("of equal scores the last", _last_of_equal),
        Wrong("scores rounded before they are compared", _coarse_scores),
        Wrong("smallest first", _smallest_first),
    ),
)
