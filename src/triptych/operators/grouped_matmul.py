"""Rows in groups, each group's times a matrix of its own: what a layer of experts computes of sorted tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from triptych.operators.arithmetic import narrow_product, pick
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, inputs, normal, standard
from triptych.operators.formula import Formula
from triptych.operators.matmul import product_error
from triptych.operators.operator import NOTHING, Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _of_groups(compute: Callable[[Array, Array], Array], a: Array, b: Array, offsets: Array) -> Array:
    """What a function makes of each group's rows and its matrix, group after group."""
    return np.concatenate([compute(a[offsets[g] : offsets[g + 1]], matrix) for g, matrix in enumerate(b)])


def _reference(given: Arrays, size: Values) -> Outputs:
    a, b, offsets = pick(given, "a b offsets")
    return (_of_groups(np.matmul, a, b, offsets),)


def _budget(case: Case) -> Outputs:
    a, b, offsets = pick(case.given, "a b offsets")
    return (rounding(case.truth, case.dtype) + _of_groups(product_error, a, b, offsets),)


def _even(draw: Draw) -> Mapping[str, Array]:
    """Each group has a row at least, the others lie anywhere."""
    groups, rows = draw.size["groups"], draw.size["rows"]
    cuts = np.sort(draw.random.choice(np.arange(1, rows), groups - 1, replace=False))
    return {"offsets": np.concatenate(([0], cuts, [rows]))}


def _skewed(draw: Draw) -> Mapping[str, Array]:
    """One row in each group but the last, which has all the others."""
    groups, rows = draw.size["groups"], draw.size["rows"]
    return {"offsets": np.append(np.arange(groups), rows)}


def _half_sums(case: Case) -> Outputs:
    a, b, offsets = pick(case.given, "a b offsets")
    return (_of_groups(lambda rows, matrix: narrow_product(rows, matrix, case.dtype), a, b, offsets),)


def _boundary(case: Case) -> Outputs:
    """Groups end a row too early."""
    offsets = case.given["offsets"].copy()
    offsets[1:-1] -= 1
    return case.computed(offsets=offsets)


def _even_groups(case: Case) -> Outputs:
    offsets = np.linspace(0, case.size["rows"], case.size["groups"] + 1).astype(np.int64)
    return case.computed(offsets=offsets)


GROUPED_MATMUL = Operator(
    name="grouped_matmul",
    computes="c[i] = a[i] × b[g], for the rows i from offsets[g] up to offsets[g + 1]",
    family="product",
    inputs=(
        Parameter("a", "rows k", "rows, group after group"),
        Parameter("b", "groups k n", "a matrix for each group, by rows"),
        Parameter("offsets", "groups+1", "each group's first row, and the number of rows", "s32"),
    ),
    outputs=(Parameter("c", "rows n", "products, summed up in f32"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"rows": 40, "groups": 5, "n": 24, "k": 64}, "groups that no tile divides"),
        Size(
            "mixtral_8x7b",
            {"rows": 2 * 2048, "groups": 8, "n": 14336, "k": 4096},
            "Mixtral 8x7B: 8 experts, 2 of them for each of 2048 tokens",
        ),
        Size(
            "qwen_3_30b",
            {"rows": 8 * 2048, "groups": 128, "n": 768, "k": 2048},
            "Qwen3 30B-A3B: 128 experts, 8 of them for each of 2048 tokens",
        ),
    ),
    distributions=(
        *standard(also=_even),
        inputs("skewed", "normal; all rows but one for each other group are in the last", normal, _skewed),
    ),
    reference=_reference,
    budget=_budget,
    derivation="as matmul's: a rounding to T, and k + 1 roundings of f32 relative to Σ |a| |b|",
    flops=NOTHING,
    matrix_flops=Formula("2 * rows * n * k"),
    wrong=(
        Wrong("groups end a row too early", _boundary),
        Wrong("all groups as large", _even_groups),
        Wrong("sums in half precision", _half_sums),
        Wrong("the groups' matrices are one late", lambda case: case.computed(b=np.roll(case.given["b"], 1, 0))),
    ),
)
