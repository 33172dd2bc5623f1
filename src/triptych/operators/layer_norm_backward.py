"""The gradients of layer_norm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import narrow_sum, pick
from triptych.operators.budgets import UNIT, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, normal, normal_times, standard
from triptych.operators.formula import Formula
from triptych.operators.layer_norm import LAYER_NORM, normalised
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Values, Wrong


def _gradients(grad_y: Array, x_hat: Array, weight: Array, factor: Array) -> Outputs:
    grad = grad_y * weight
    along = (grad * x_hat).mean(-1, keepdims=True)
    grad_x = (grad - grad.mean(-1, keepdims=True) - x_hat * along) * factor
    return grad_x, (grad_y * x_hat).sum(0), grad_y.sum(0)


def _reference(given: Arrays, size: Values) -> Outputs:
    grad_y, x, weight, mean, rstd = pick(given, "grad_y x weight mean rstd")
    factor = rstd[:, None]
    return _gradients(grad_y, (x - mean[:, None]) * factor, weight, factor)


def _budget(case: Case) -> Outputs:
    grad_y, x, weight, mean, rstd = pick(case.given, "grad_y x weight mean rstd")
    rows, columns = case.size["rows"], case.size["columns"]
    factor = rstd[:, None]
    x_hat = np.abs(x - mean[:, None]) * factor
    slip = UNIT * (2 * (np.abs(x) + np.abs(mean[:, None])) * factor + x_hat)
    grad = np.abs(grad_y * weight)
    mean_error = sums(grad.sum(-1, keepdims=True), columns + 2) / columns
    along = (grad * x_hat).mean(-1, keepdims=True)
    along_error = sums(along, columns + 3) + (grad * slip).mean(-1, keepdims=True)
    roundings = 4 * UNIT * (grad + grad.mean(-1, keepdims=True) + x_hat * along)
    grad_x_error = factor * (mean_error + x_hat * along_error + slip * along + roundings)
    weight_error = sums((np.abs(grad_y) * x_hat).sum(0), rows + 1) + (np.abs(grad_y) * slip).sum(0)
    errors = grad_x_error, weight_error, sums(np.abs(grad_y).sum(0), rows)
    return tuple(rounding(one, case.dtype) + error for one, error in zip(case.expected, errors, strict=True))


def _statistics(draw: Draw) -> Mapping[str, Array]:
    """Rows, their means and reciprocal standard deviations, as the forward pass left them."""
    x = normal_times(3.0)(draw, draw.shapes["x"]).astype(draw.dtype.numpy).astype(np.float64)
    return {"x": x, "mean": x.mean(-1), "rstd": normalised(x)[1][:, 0]}


def _without(case: Case, *, mean: bool) -> Outputs:
    """Of the two means that grad_x lacks, one."""
    grad_y, x, weight, means, rstd = pick(case.given, "grad_y x weight mean rstd")
    x_hat, grad = (x - means[:, None]) * rstd[:, None], grad_y * weight
    taken = grad.mean(-1, keepdims=True) if mean else x_hat * (grad * x_hat).mean(-1, keepdims=True)
    return (case.truth + taken * rstd[:, None], *case.expected[1:])


def _half_sums(case: Case) -> Outputs:
    return (*case.expected[:2], narrow_sum(case.given["grad_y"].T, case.dtype))


def _last_row(case: Case) -> Outputs:
    return (case.expected[0], case.expected[1], case.expected[2] - case.given["grad_y"][-1])


LAYER_NORM_BACKWARD = Operator(
    name="layer_norm_backward",
    computes="grad_x = (g − mean(g) − x̂ mean(g x̂)) rstd, g = grad_y · weight, x̂ = (x − mean) rstd; grad_weight ="
    " Σ_i grad_y x̂; grad_bias = Σ_i grad_y",
    family="normalisation",
    inputs=(
        Parameter("grad_y", "rows columns", "the gradient of layer_norm's output"),
        Parameter("x", "rows columns", "its input"),
        Parameter("weight", "columns", "its factors"),
        Parameter("mean", "rows", "the rows' means", "f32"),
        Parameter("rstd", "rows", "the rows' 1 / √(variance + ε)", "f32"),
    ),
    outputs=(
        Parameter("grad_x", "rows columns", "the gradient of x"),
        Parameter("grad_weight", "columns", "the gradient of the factors, summed up over the rows"),
        Parameter("grad_bias", "columns", "the gradient of the terms, likewise"),
    ),
    dtypes=("f32", "f16", "bf16"),
    sizes=LAYER_NORM.sizes,
    distributions=standard(also=_statistics, weight=normal),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; for grad_x the two means' errors (columns + 2 and columns + 3 roundings of absolute"
    " terms), x̂'s (3 roundings) where it is a factor, and 4 roundings of each term; for grad_weight and grad_bias as"
    " many roundings of absolute terms as there are rows",
    flops=Formula("(13 * rows - 2) * columns"),
    wrong=(
        Wrong("mean(g) is not taken off", lambda case: _without(case, mean=True)),
        Wrong("x̂ mean(g x̂) is not taken off", lambda case: _without(case, mean=False)),
        Wrong("sums over the rows in half precision", _half_sums),
        Wrong("the last row is missing in grad_bias", _last_row),
        Wrong("weight is forgotten", lambda case: case.computed(weight=np.ones_like(case.given["weight"]))),
    ),
)
