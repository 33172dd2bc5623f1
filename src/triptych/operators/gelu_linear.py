"""y = GELU(W x + b), for one vector x."""

from __future__ import annotations

import math

import numpy as np

from triptych.operators.arithmetic import gelu, narrow_sum
from triptych.operators.budgets import FUNCTION, rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Shape, normal, standard
from triptych.operators.formula import Formula
from triptych.operators.matmul import product_error
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

SLOPE = 1.13
"""GELU's steepest slope, near x = 1.4; it is 1.129."""


def _argument(given: Arrays) -> Array:
    return given["w"] @ given["x"] + given["b"]


def gelu_error(argument: Array, error: Array) -> Array:
    """What GELU makes of an argument's error, and its own: 1 + erf cancels for negative arguments, and is wrong by
    erf's error, which is relative to 1, times x / 2."""
    return SLOPE * error + FUNCTION * np.abs(argument)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (gelu(_argument(given)),)


def _budget(case: Case) -> Outputs:
    w, x, b = (case.given[name] for name in ("w", "x", "b"))
    argument = _argument(case.given)
    error = product_error(w, x[:, None])[:, 0] + 2.0**-23 * (np.abs(w) @ np.abs(x) + np.abs(b))
    return (rounding(case.truth, case.dtype) + gelu_error(argument, error),)


def _by_rows(draw: Draw, shape: Shape) -> Array:
    """Normal values, divided by the root of a row's length: a layer as it is initialised."""
    return normal(draw, shape) / math.sqrt(shape[-1])


def _tanh(case: Case) -> Outputs:
    x = _argument(case.given)
    return (x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)


def _half_sums(case: Case) -> Outputs:
    w, x, b = (case.given[name] for name in ("w", "x", "b"))
    return (gelu(narrow_sum(w * x, case.dtype) + b),)


GELU_LINEAR = Operator(
    name="gelu_linear",
    computes="y = GELU(W x + b), GELU(t) = t (1 + erf(t / √2)) / 2",
    family="product",
    inputs=(
        Parameter("w", "m k", "weights, by rows"),
        Parameter("x", "k", "the vector"),
        Parameter("b", "m", "the bias"),
    ),
    outputs=(Parameter("y", "m", "the layer's output"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"m": 96, "k": 128}, "multiples of a warp"),
        Size("ragged", {"m": 77, "k": 93}, "no multiples of anything"),
        Size("demo", {"m": 4096, "k": 256}, "what `triptych demo` runs"),
        Size("gpt2_xl", {"m": 6400, "k": 1600}, "GPT-2 XL: the first layer of an MLP, one token"),
    ),
    distributions=standard(w=_by_rows),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; the product's error (k + 1 roundings of f32 relative to Σ |w| |x|, 2 for the bias)"
    " times GELU's steepest slope, 1.13; 16 roundings of erf and the products around it, relative to the argument",
    flops=Formula("5 * m"),
    fused_flops=Formula("2 * m"),
    matrix_flops=Formula("2 * m * k"),
    wrong=(
        Wrong("GELU by tanh", _tanh, ("f32",)),
        Wrong("ReLU instead of GELU", lambda case: (np.maximum(_argument(case.given), 0),)),
        Wrong("without the bias", lambda case: case.computed(b=np.zeros_like(case.given["b"]))),
        Wrong("sums in half precision", _half_sums),
        Wrong(
            "the last product is missing",
            lambda case: case.computed(x=np.append(case.given["x"][:-1], 0)),
        ),
    ),
)
