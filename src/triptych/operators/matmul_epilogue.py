"""C = GELU(A × B + bias) + residual: a product whose epilogue spares three passes over C."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import coarse, gelu, narrow_product, pick
from triptych.operators.budgets import UNIT, rounding
from triptych.operators.case import Case
from triptych.operators.draw import standard
from triptych.operators.formula import Formula
from triptych.operators.gelu_linear import gelu_error
from triptych.operators.matmul import product_error
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    a, b, bias, residual = pick(given, "a b bias residual")
    return (gelu(a @ b + bias) + residual,)


def _budget(case: Case) -> Outputs:
    a, b, bias, residual = pick(case.given, "a b bias residual")
    argument = a @ b + bias
    error = product_error(a, b) + 2 * UNIT * (np.abs(a) @ np.abs(b) + np.abs(bias))
    last = UNIT * (np.abs(case.truth) + np.abs(residual))
    return (rounding(case.truth, case.dtype) + gelu_error(argument, error) + last,)


def _half_sums(case: Case) -> Outputs:
    a, b, bias, residual = pick(case.given, "a b bias residual")
    return (gelu(narrow_product(a, b, case.dtype) + bias) + residual,)


def _stored_between(case: Case) -> Outputs:
    a, b, bias, residual = pick(case.given, "a b bias residual")
    digits = {"f32": 11, "f16": 11, "bf16": 8}[case.dtype.name]
    return (coarse(gelu(coarse(a @ b, digits) + bias), digits) + residual,)


def _bias_by_rows(case: Case) -> Outputs:
    a, b, bias, residual = pick(case.given, "a b bias residual")
    return (gelu(a @ b + np.resize(bias, len(a))[:, None]) + residual,)


MATMUL_EPILOGUE = Operator(
    name="matmul_epilogue",
    computes="c = GELU(a × b + bias) + residual, GELU(t) = t (1 + erf(t / √2)) / 2",
    family="product",
    inputs=(
        Parameter("a", "m k", "the left matrix, by rows"),
        Parameter("b", "k n", "the right matrix, by rows"),
        Parameter("bias", "n", "a term for each column"),
        Parameter("residual", "m n", "added at the end"),
    ),
    outputs=(Parameter("c", "m n", "the layer's output"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"m": 32, "n": 40, "k": 64}, "multiples of 8"),
        Size("ragged", {"m": 37, "n": 29, "k": 53}, "no multiples of anything"),
        Size("vit_b_16", {"m": 16 * 197, "n": 3072, "k": 768}, "ViT-B/16: the first layer of an MLP, 16 pictures"),
        Size("gpt2_xl", {"m": 1024, "n": 6400, "k": 1600}, "GPT-2 XL: the first layer of an MLP, 1024 tokens"),
    ),
    distributions=standard(),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; the product's error (k + 1 roundings of f32 relative to Σ |a| |b|, 2 for the bias)"
    " times GELU's steepest slope, 1.13; 16 roundings of erf, relative to the argument; one of each last term",
    flops=Formula("6 * m * n"),
    fused_flops=Formula("3 * m * n"),
    matrix_flops=Formula("2 * m * n * k"),
    wrong=(
        Wrong("the product stored in half precision before GELU", _stored_between),
        Wrong("the bias along the rows", _bias_by_rows),
        Wrong("the residual is missing", lambda case: case.computed(residual=np.zeros_like(case.given["residual"]))),
        Wrong("sums in half precision", _half_sums),
        Wrong(
            "the residual inside GELU",
            lambda case: (gelu(case.given["a"] @ case.given["b"] + case.given["bias"] + case.given["residual"]),),
        ),
    ),
)
