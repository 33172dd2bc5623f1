"""Rotary position embedding: pairs of features, half a head apart, turned by an angle that grows with the position."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import pick
from triptych.operators.budgets import UNIT, rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

BASE = 500000.0
"""Llama 3's."""


def _turned(x: Array, cos: Array, sin: Array) -> Array:
    first, second = np.split(x, 2, -1)
    c, s = cos[:, None], sin[:, None]
    return np.concatenate((first * c - second * s, second * c + first * s), -1)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_turned(*pick(given, "x cos sin")),)


def _budget(case: Case) -> Outputs:
    x, cos, sin = (np.abs(one) for one in pick(case.given, "x cos sin"))
    terms = np.abs(_turned(x, cos, -sin))
    terms[..., x.shape[-1] // 2 :] = _turned(x, cos, sin)[..., x.shape[-1] // 2 :]
    return (rounding(case.truth, case.dtype) + 2 * UNIT * terms,)


def _angles(draw: Draw) -> Mapping[str, Array]:
    """Of the positions from 0 on."""
    tokens, half = draw.shapes["cos"]
    angles = np.arange(tokens)[:, None] * BASE ** (-np.arange(half) / half)
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


def _neighbours(case: Case) -> Outputs:
    """Pairs are neighbours, as GPT-J has them."""
    x, cos, sin = pick(case.given, "x cos sin")
    c, s, result = cos[:, None], sin[:, None], np.empty_like(x)
    result[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
    result[..., 1::2] = x[..., 1::2] * c + x[..., 0::2] * s
    return (result,)


ROPE = Operator(
    name="rope",
    computes="y[t, h, :d/2] = x₁ cos[t] − x₂ sin[t]; y[t, h, d/2:] = x₂ cos[t] + x₁ sin[t]; x₁, x₂ = halves of x[t, h]",
    family="elementwise",
    inputs=(
        Parameter("x", "tokens heads d", "queries or keys"),
        Parameter("cos", "tokens d//2", "cosines of the angles", "f32"),
        Parameter("sin", "tokens d//2", "sines of the angles", "f32"),
    ),
    outputs=(Parameter("y", "tokens heads d", "the same, turned"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"tokens": 9, "heads": 3, "d": 64}, "an odd number of tokens and heads"),
        Size("llama_3_8b", {"tokens": 2048, "heads": 32, "d": 128}, "Llama 3 8B: queries of 32 heads, 2048 tokens"),
        Size("llama_3_8b_keys", {"tokens": 2048, "heads": 8, "d": 128}, "Llama 3 8B: keys of 8 heads, 2048 tokens"),
    ),
    distributions=standard(degree=1, also=_angles),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, two of f32 relative to the sum of the two absolute products",
    flops=Formula("tokens * heads * d * 3"),
    wrong=(
        Wrong("pairs are neighbours", _neighbours),
        Wrong("turned the other way", lambda case: case.computed(sin=-case.given["sin"])),
        Wrong(
            "positions begin with 1",
            lambda case: case.computed(cos=np.roll(case.given["cos"], -1, 0), sin=np.roll(case.given["sin"], -1, 0)),
        ),
        Wrong(
            "the second half is left as it is",
            lambda case: (
                np.concatenate(
                    (case.truth[..., : case.size["d"] // 2], case.given["x"][..., case.size["d"] // 2 :]), -1
                ),
            ),
        ),
    ),
    constants={"base": BASE},
)
