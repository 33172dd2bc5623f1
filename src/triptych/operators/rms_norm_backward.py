"""The gradients of rms_norm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import narrow_sum, pick
from triptych.operators.budgets import UNIT, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, normal, normal_times, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Values, Wrong
from triptych.operators.rms_norm import EPSILON, RMS_NORM


def _reference(given: Arrays, size: Values) -> Outputs:
    grad_y, x, weight, rstd = pick(given, "grad_y x weight rstd")
    x_hat, grad = x * rstd[:, None], grad_y * weight
    along = (grad * x_hat).mean(-1, keepdims=True)
    return (grad - x_hat * along) * rstd[:, None], (grad_y * x_hat).sum(0)


def _budget(case: Case) -> Outputs:
    grad_y, x, weight, rstd = pick(case.given, "grad_y x weight rstd")
    rows, columns = case.size["rows"], case.size["columns"]
    x_hat, grad = np.abs(x * rstd[:, None]), np.abs(grad_y * weight)
    along = (grad * x_hat).mean(-1, keepdims=True)
    grad_x_error = rstd[:, None] * (x_hat * sums(along, columns + 4) + 4 * UNIT * (grad + x_hat * along))
    errors = grad_x_error, sums((np.abs(grad_y) * x_hat).sum(0), rows + 2)
    return tuple(rounding(one, case.dtype) + error for one, error in zip(case.expected, errors, strict=True))


def _statistics(draw: Draw) -> Mapping[str, Array]:
    """Rows and the reciprocal roots of their mean squares, as the forward pass left them."""
    x = normal_times(3.0)(draw, draw.shapes["x"]).astype(draw.dtype.numpy).astype(np.float64)
    return {"x": x, "rstd": 1 / np.sqrt((x * x).mean(-1) + EPSILON)}


def _without_mean(case: Case) -> Outputs:
    grad_y, weight, rstd = pick(case.given, "grad_y weight rstd")
    return grad_y * weight * rstd[:, None], case.expected[1]


def _half_sums(case: Case) -> Outputs:
    grad_y, x, rstd = pick(case.given, "grad_y x rstd")
    return case.truth, narrow_sum((grad_y * x * rstd[:, None]).T, case.dtype)


def _last_row(case: Case) -> Outputs:
    grad_y, x, rstd = pick(case.given, "grad_y x rstd")
    return case.truth, case.expected[1] - grad_y[-1] * x[-1] * rstd[-1]


RMS_NORM_BACKWARD = Operator(
    name="rms_norm_backward",
    computes="grad_x = (g − x̂ mean(g x̂)) rstd, g = grad_y · weight, x̂ = x rstd; grad_weight = Σ_i grad_y x̂",
    family="normalisation",
    inputs=(
        Parameter("grad_y", "rows columns", "the gradient of rms_norm's output"),
        Parameter("x", "rows columns", "its input"),
        Parameter("weight", "columns", "its factors"),
        Parameter("rstd", "rows", "the rows' 1 / √(mean square + ε)", "f32"),
    ),
    outputs=(
        Parameter("grad_x", "rows columns", "the gradient of x"),
        Parameter("grad_weight", "columns", "the gradient of the factors, summed up over the rows"),
    ),
    dtypes=("f32", "f16", "bf16"),
    sizes=RMS_NORM.sizes,
    distributions=standard(also=_statistics, weight=normal),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; for grad_x the mean's error (columns + 4 roundings of absolute terms) times |x̂|, and 4"
    " roundings of each term; for grad_weight rows + 2 roundings of absolute terms",
    flops=Formula("(9 * rows - 1) * columns"),
    wrong=(
        Wrong("x̂ mean(g x̂) is not taken off", _without_mean),
        Wrong("sums over the rows in half precision", _half_sums),
        Wrong("the last row is missing in grad_weight", _last_row),
        Wrong("weight is forgotten", lambda case: case.computed(weight=np.ones_like(case.given["weight"]))),
    ),
)
