"""The loss of each row of scores: the negative logarithm of its target's probability."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import exponentials, narrow_sum, pick, softmax
from triptych.operators.budgets import FUNCTION, UNIT, rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, inputs, normal, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong
from triptych.operators.softmax import relative_error

IGNORED = -100
"""A target that has no loss, as torch has it."""
_WITH_LOSS = "(rows - rows // 8 - 1)"
"""At least so many rows have a target (`_targets`); a kernel need not read the others."""


def _losses(x: Array, targets: Array, total: Array, largest: Array) -> Array:
    at = np.take_along_axis(x, np.maximum(targets, 0)[:, None], -1)
    return np.where(targets == IGNORED, x.dtype.type(0), (np.log(total) + largest - at)[:, 0])


def _reference(given: Arrays, size: Values) -> Outputs:
    _powers, total, largest = exponentials(given["logits"])
    return (_losses(given["logits"], given["targets"], total, largest),)


def _budget(case: Case) -> Outputs:
    x, targets = pick(case.given, "logits targets")
    _powers, total, largest = exponentials(x)
    at = np.take_along_axis(x, np.maximum(targets, 0)[:, None], -1)
    logarithm = np.log(total)
    error = (softmax(x) * relative_error(x)).sum(-1, keepdims=True) + FUNCTION * (1 + logarithm)
    error = error + 2 * UNIT * (np.abs(largest) + np.abs(at) + np.abs(logarithm))
    return (rounding(case.truth, case.operator.outputs[0].element(case.dtype)) + error[:, 0],)


def _targets(draw: Draw) -> Mapping[str, Array]:
    """Any column; one row in eight has none, and the last column is a target too."""
    rows, columns = draw.size["rows"], draw.size["columns"]
    targets = draw.random.integers(0, columns, rows)
    targets[::8], targets[-1] = IGNORED, columns - 1
    return {"targets": targets}


def _most_likely(draw: Draw) -> Mapping[str, Array]:
    """The target has nearly all the weight: its loss is small, and what is left of a difference."""
    x = normal(draw, draw.shapes["logits"])
    targets: Array = draw.random.integers(0, draw.size["columns"], draw.size["rows"])
    np.put_along_axis(x, targets[:, None], 12.0, -1)
    return {"logits": x, "targets": targets}


def _half_sums(case: Case) -> Outputs:
    x, targets = pick(case.given, "logits targets")
    powers, _total, largest = exponentials(x)
    return (_losses(x, targets, narrow_sum(powers, case.dtype)[:, None], largest),)


def _without_maximum(case: Case) -> Outputs:
    x, targets = (one.astype(kind) for one, kind in zip(pick(case.given, "logits targets"), "fi", strict=True))
    return (_losses(x, targets, np.exp(x).sum(-1, keepdims=True), np.zeros((len(x), 1), np.float32)),)


def _ignored_counted(case: Case) -> Outputs:
    return case.computed(targets=np.maximum(case.given["targets"], 0))


CROSS_ENTROPY = Operator(
    name="cross_entropy",
    computes=f"loss[i] = log Σ_j exp(logits[i, j]) − logits[i, targets[i]]; 0 where targets[i] = {IGNORED}",
    family="reduction",
    inputs=(
        Parameter("logits", "rows columns", "scores", least=f"{_WITH_LOSS} * columns"),
        Parameter("targets", "rows", "each row's column, or none", "s64"),
    ),
    outputs=(Parameter("loss", "rows", "losses", "f32"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 17, "columns": 203}, "rows that are no multiple of a vector"),
        Size("gpt2", {"rows": 8 * 1024, "columns": 50257}, "GPT-2: a vocabulary of 50257, 8 sequences of 1024 tokens"),
        Size("llama_3", {"rows": 2048, "columns": 128256}, "Llama 3: a vocabulary of 128256, 2048 tokens"),
    ),
    distributions=(
        *standard(degree=1, also=_targets),
        inputs("likely", "the target has nearly all the weight", normal, _most_likely),
    ),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to f32; the sum's relative error, as softmax's, which is the logarithm's absolute one; 16 of"
    " the logarithm; two of each of the largest score, the target's and the logarithm",
    flops=Formula(f"{_WITH_LOSS} * 3 * columns"),
    wrong=(
        Wrong("the maximum is not subtracted", _without_maximum),
        Wrong("sums in half precision", _half_sums),
        Wrong("rows without a target are counted", _ignored_counted),
        Wrong(
            "targets are one column off",
            lambda case: case.computed(
                targets=np.where(case.given["targets"] > 0, case.given["targets"] - 1, case.given["targets"])
            ),
        ),
    ),
)
