"""A chain of elementwise operations, to be fused: each array crosses the memory bus once."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import coarse, pick, sigmoid
from triptych.operators.budgets import SMALLEST, UNIT, rounding
from triptych.operators.case import Case
from triptych.operators.draw import standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    a, b, c = pick(given, "a b c")
    return (sigmoid(a * b + c) * a - c,)


def _budget(case: Case) -> Outputs:
    a, b, c = pick(case.given, "a b c")
    argument = a * b + c
    gate = sigmoid(argument)
    slope = gate * (1 - gate)
    error = (
        slope * UNIT * 2 * (np.abs(a * b) + np.abs(c))
        + gate * UNIT * ((1 - gate) * (2 * np.abs(argument) + 8) + 4)
        + SMALLEST
    )
    return (rounding(case.truth, case.dtype) + np.abs(a) * error + 2 * UNIT * (np.abs(a) * gate + np.abs(c)),)


def _stored_between(case: Case) -> Outputs:
    """As three kernels would, each of which stores f16."""
    a, b, c = pick(case.given, "a b c")
    digits = {"f32": 11, "f16": 11, "bf16": 8}[case.dtype.name]
    gate = coarse(sigmoid(coarse(coarse(a * b, digits) + c, digits)), digits)
    return (coarse(gate * a, digits) - c,)


ELEMENTWISE_CHAIN = Operator(
    name="elementwise_chain",
    computes="y[i] = σ(a[i] b[i] + c[i]) a[i] − c[i], σ(t) = 1 / (1 + e⁻ᵗ)",
    family="elementwise",
    inputs=(
        Parameter("a", "n", "factors, gated"),
        Parameter("b", "n", "factors of the gate"),
        Parameter("c", "n", "terms"),
    ),
    outputs=(Parameter("y", "n", "results"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"n": 1000}, "no multiple of a block or of a vector"),
        Size("llama_3_8b_mlp", {"n": 14336 * 2048}, "Llama 3 8B: an MLP's 14336 activations of 2048 tokens"),
    ),
    distributions=standard(),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; two roundings of a b + c times σ's slope; 2 |t| + 8 roundings of e⁻ᵗ times 1 − σ, 4 of"
    " the quotient; one of each term of the difference",
    flops=Formula("6 * n"),
    fused_flops=Formula("5 * n"),
    wrong=(
        Wrong("intermediate results are stored in half precision", _stored_between),
        Wrong("c is added at the end", lambda case: (case.truth + 2 * case.given["c"],)),
        Wrong("a and b are swapped", lambda case: case.computed(a=case.given["b"], b=case.given["a"])),
        Wrong("the last element is missing", lambda case: (np.append(case.truth[:-1], 0),)),
    ),
)
