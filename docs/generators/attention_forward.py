"""What `attention_forward` computes: attention, and the logarithms of its sums, which the backward pass takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from triptych.operators import OPERATORS, Case, Parameter
from triptych.operators.arithmetic import exponentials, pick
from triptych.operators.attention import Weights, each_head, masked, scores, spread_out
from triptych.operators.budgets import FUNCTION
from triptych.operators.operator import Array, Arrays, Outputs, Values

_ATTENTION = OPERATORS["attention"]


def _log_sums(q: Array, k: Array, causal: int) -> Array:
    _, total, largest = exponentials(masked(scores(q, k), causal))
    return (np.log2(total) + largest * math.log2(math.e))[..., 0]


def _reference(given: Arrays, size: Values) -> Outputs:
    q, k = pick(given, "q k")

    def of_head(q: Array, k: Array) -> Outputs:
        return (_log_sums(q, k, size["causal"]),)

    return *_ATTENTION.reference(given, size), *each_head(of_head, q, spread_out(k, size["heads"]))


def _budget(case: Case) -> Outputs:
    """Of logarithms: the mean relative error of the powers that are summed up, and f32's logarithm and sum."""
    q, k = pick(case.given, "q k")

    def of_head(q: Array, k: Array) -> Outputs:
        weights = Weights.of(q, k, case.size["causal"])
        powers = (weights.p * weights.relative).sum(-1) * math.log2(math.e)
        return (powers + FUNCTION * (1 + np.abs(_log_sums(q, k, case.size["causal"]))),)

    return *_ATTENTION.budget(case), *each_head(of_head, q, spread_out(k, case.size["heads"]))


ATTENTION_FORWARD = replace(
    _ATTENTION,
    outputs=(*_ATTENTION.outputs, Parameter("log_sums", "batch heads n", "log2 Σ exp(score) of each row", "f32")),
    reference=_reference,
    budget=_budget,
)
