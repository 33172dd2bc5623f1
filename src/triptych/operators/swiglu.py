"""SiLU(gate) · up: the gated unit of Llama's MLP."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import coarse, pick, sigmoid
from triptych.operators.budgets import SMALLEST, UNIT, rounding
from triptych.operators.case import Case
from triptych.operators.draw import standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["gate"] * sigmoid(given["gate"]) * given["up"],)


def _budget(case: Case) -> Outputs:
    gate, up = pick(case.given, "gate up")
    relative = UNIT * ((1 - sigmoid(gate)) * (2 * np.abs(gate) + 8) + 6)
    return (rounding(case.truth, case.dtype) + relative * np.abs(case.truth) + SMALLEST * np.abs(gate * up),)


def _half_gate(case: Case) -> Outputs:
    """The gate's unit is stored in half precision before the product."""
    gate, up = pick(case.given, "gate up")
    digits = {"f32": 11, "f16": 11, "bf16": 8}[case.dtype.name]
    return (coarse(gate * sigmoid(gate), digits) * up,)


def _gelu_like(case: Case) -> Outputs:
    gate, up = pick(case.given, "gate up")
    return (gate * sigmoid(1.702 * gate) * up,)


SWIGLU = Operator(
    name="swiglu",
    computes="y[i, j] = SiLU(gate[i, j]) · up[i, j], SiLU(t) = t / (1 + e⁻ᵗ)",
    family="elementwise",
    inputs=(
        Parameter("gate", "rows columns", "arguments of SiLU"),
        Parameter("up", "rows columns", "factors"),
    ),
    outputs=(Parameter("y", "rows columns", "products"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 8, "columns": 128}, "whole vectors"),
        Size("ragged", {"rows": 7, "columns": 99}, "no multiples of anything"),
        Size("llama_3_8b", {"rows": 2048, "columns": 14336}, "Llama 3 8B: an MLP of 14336, 2048 tokens"),
        Size("llama_3_70b", {"rows": 2048, "columns": 28672}, "Llama 3 70B: an MLP of 28672, 2048 tokens"),
    ),
    distributions=standard(),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; relative to y, 2 |gate| + 8 roundings of e⁻ᵗ times 1 − σ(gate), 6 for sum, quotient"
    " and products; 2⁻¹²⁶ of σ(gate), where e⁻ᵗ is beyond f32",
    flops=Formula("rows * columns * 4"),
    fused_flops=Formula("rows * columns * 2"),
    wrong=(
        Wrong("SiLU's results in half precision", _half_gate),
        Wrong("gate and up are swapped", lambda case: case.computed(gate=case.given["up"], up=case.given["gate"])),
        Wrong("GELU's approximation instead of SiLU", _gelu_like),
        Wrong("SiLU's factor t is missing", lambda case: (sigmoid(case.given["gate"]) * case.given["up"],)),
    ),
)
