"""A product of 8-bit matrices with a scale for each row of A and each row of B (which holds columns of the product)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from triptych.operators.arithmetic import narrow_sum, pick
from triptych.operators.budgets import UNIT, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Shape, inputs, zeros
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

SHORT_SUMS = 2.0**-11
"""Of fp8 sums, relative to their absolute terms: Hopper's tensor cores keep about 14 bits between steps of 32 products;
four such steps lie between two sums in f32, as in DeepSeek-V3's kernels."""


def _scaled(product: Array, given: Arrays) -> Array:
    return product * given["scale_a"][:, None] * given["scale_b"]


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_scaled(given["a"] @ given["b"].T, given).astype(given["scale_a"].dtype),)


def _budget(case: Case) -> Outputs:
    a, b = (np.abs(one).astype(np.float64) for one in pick(case.given, "a b"))
    terms = a @ b.T
    error = sums(terms, case.size["k"]) + SHORT_SUMS * terms if case.dtype.is_float else np.zeros(terms.shape)
    stored = case.operator.outputs[0].element(case.dtype)
    return (rounding(case.truth, stored) + _scaled(error, case.given) + 3 * UNIT * np.abs(case.truth),)


def _values(draw: Draw, shape: Shape, spread: float) -> Array:
    """Of the case's 8-bit type: normal values, whose standard deviation is a share of the largest."""
    top = 448.0 if draw.dtype.is_float else 127.0
    values = np.clip(draw.random.standard_normal(shape) * spread * top, -top, top)
    return values if draw.dtype.is_float else np.round(values)


def _made(spread: float) -> Callable[[Draw], Mapping[str, Array]]:
    def make(draw: Draw) -> Mapping[str, Array]:
        scales = {name: draw.random.uniform(0.001, 0.02, draw.shapes[name]) for name in ("scale_a", "scale_b")}
        return {**{name: _values(draw, draw.shapes[name], spread) for name in ("a", "b")}, **scales}

    return make


def _corners(draw: Draw) -> Mapping[str, Array]:
    """The largest values of either sign: sums of s8 exceed 16 bits, of fp8 f16."""
    top = 448.0 if draw.dtype.is_float else 127.0
    matrices = {name: draw.random.choice([-top, top, top], draw.shapes[name]) for name in ("a", "b")}
    return {**matrices, **{name: np.full(draw.shapes[name], 2.0**-10) for name in ("scale_a", "scale_b")}}


def _narrow(case: Case) -> Outputs:
    """Sums of s8 wrap around in 16 bits; those of fp8 are in half precision."""
    a, b = pick(case.given, "a b")
    if not case.dtype.is_float:
        return (_scaled((a @ b.T).astype(np.int16).astype(np.float64), case.given),)
    terms = (a[:, None] * b[None]).astype(np.float64)
    return (_scaled(narrow_sum(terms, case.operator.outputs[0].element(case.dtype)), case.given),)


QUANTISED_MATMUL = Operator(
    name="quantised_matmul",
    computes="c[i, j] = scale_a[i] scale_b[j] Σ_k a[i, k] b[j, k]",
    family="product",
    inputs=(
        Parameter("a", "m k", "the left matrix, by rows"),
        Parameter("b", "n k", "the right matrix, by columns: k is the fast axis of both"),
        Parameter("scale_a", "m", "a scale for each row of a", "f32"),
        Parameter("scale_b", "n", "a scale for each row of b", "f32"),
    ),
    outputs=(Parameter("c", "m n", "the product, scaled", "bf16"),),
    dtypes=("s8", "f8e4m3fn"),
    sizes=(
        Size("tiny", {"m": 32, "n": 24, "k": 160}, "multiples of a tensor core's tile"),
        Size("llama_3_8b_gate", {"m": 2048, "n": 14336, "k": 4096}, "Llama 3 8B: gate projection of 2048 tokens"),
        Size("deepseek_v3_expert", {"m": 4096, "n": 2048, "k": 7168}, "DeepSeek-V3: an expert's gate, 4096 tokens"),
    ),
    distributions=(
        inputs("normal", "normal values of a quarter of the type's range", zeros, _made(0.25)),
        inputs("small", "normal values of a hundredth of the type's range", zeros, _made(0.01)),
        inputs("corners", "the largest values of the type, two thirds of them positive", zeros, _corners),
    ),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to bf16, three of f32 for the scales; s8: none of the sums, which are exact in 32 bits; fp8:"
    " k roundings of f32 and 2⁻¹¹, relative to Σ |a| |b|, for tensor cores that keep 14 bits over four steps",
    flops=Formula("2 * m * n"),
    matrix_flops=Formula("2 * m * n * k"),
    wrong=(
        Wrong("sums in 16 bits", _narrow),
        Wrong(
            "a's scales on columns",
            lambda case: (
                case.truth / case.given["scale_a"][:, None] * np.resize(case.given["scale_a"], case.size["n"]),
            ),
        ),
        Wrong("one scale for all rows", lambda case: case.computed(scale_a=np.full_like(case.given["scale_a"], 0.01))),
        Wrong(
            "the last products are missing",
            lambda case: (
                _scaled((case.given["a"][:, :-8] @ case.given["b"][:, :-8].T).astype(np.float64), case.given),
            ),
        ),
    ),
)
