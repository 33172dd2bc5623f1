"""Softmax(Q Kᵀ · scale) V, with heads that share keys and values, causal or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from triptych.core.dtypes import DType
from triptych.operators.arithmetic import coarse, pick, softmax
from triptych.operators.budgets import UNIT, chain, limits, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Shape, inputs, normal, normal_times, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong

DERIVATION = (
    "a rounding to T; relative to p |v|: the score's error (d + 2 roundings of f32 of its absolute terms, 2 |distance"
    " from the row's maximum| + 8 for the power) in the element and on average in the row's sum, n_kv roundings for"
    " each of the two sums; a rounding of each p to T, for tensor cores"
)


def spread_out(array: Array, heads: int) -> Array:
    """Keys or values `(…, heads_kv, n, d)`, each repeated for the heads of q that share it."""
    return np.repeat(array, heads // array.shape[-3], -3)


def scores(q: Array, k: Array) -> Array:
    """Q Kᵀ / √d."""
    return q @ k.swapaxes(-1, -2) * q.dtype.type(1 / math.sqrt(q.shape[-1]))


def hidden(n: int, n_kv: int) -> Array:
    """Which keys a causal query does not see: those behind its own, the last query's being the last key."""
    rows, columns = np.indices((n, n_kv))
    return columns > rows + n_kv - n


def masked(values: Array, causal: int) -> Array:
    """Scores, −∞ where a key is hidden."""
    return np.where(hidden(*values.shape[-2:]) & bool(causal), values.dtype.type(-np.inf), values)


@dataclass(frozen=True, slots=True)
class Weights:
    """What softmax makes of scores, and how far off f32 arithmetic may be."""

    p: Array
    relative: Array
    """The error of each p, relative to it."""

    @classmethod
    def of(cls, q: Array, k: Array, causal: int) -> Weights:
        """Of queries and as many heads of keys, in float64."""
        values = masked(scores(q, k), causal)
        p = softmax(values)
        distance = np.where(np.isfinite(values), values.max(-1, keepdims=True) - values, 0)
        terms = np.abs(q) @ np.abs(k).swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        own = UNIT * ((chain(q.shape[-1]) + 2) * terms + 2 * distance + 8)
        relative = np.expm1(own + (p * own).sum(-1, keepdims=True)) + UNIT * (chain(k.shape[-2]) + 4)
        return cls(p, relative)

    def narrow(self, dtype: DType) -> Array:
        """The absolute error of each p where it is stored in T, with what is below T's normal numbers."""
        return self.p * (self.relative + limits(dtype).unit) + limits(dtype).smallest / 2


def attention_error(case: Case, q: Array, k: Array, v: Array, causal: int) -> Array:
    """The budget of attention but for the last rounding; k and v have as many heads as q."""
    weights = Weights.of(q, k, causal)
    return weights.narrow(case.dtype) @ np.abs(v) + sums(weights.p @ np.abs(v), k.shape[-2])


def each_head(compute: Callable[..., Outputs], *arrays: Array) -> Outputs:
    """What a function makes of arrays `(batch, heads, …)`, a head at a time: there may be no room for all scores."""
    places = arrays[0].shape[:2]
    found = [compute(*(one[place] for one in arrays)) for place in np.ndindex(places)]
    return tuple(np.stack(parts).reshape(*places, *parts[0].shape) for parts in zip(*found, strict=True))


def _attend(q: Array, k: Array, v: Array, causal: int) -> Array:
    heads = q.shape[1]

    def attend(q: Array, k: Array, v: Array) -> Outputs:
        return (softmax(masked(scores(q, k), causal)) @ v,)

    return each_head(attend, q, spread_out(k, heads), spread_out(v, heads))[0]


def _reference(given: Arrays, size: Values) -> Outputs:
    q, k, v = pick(given, "q k v")
    return (_attend(q, k, v, size["causal"]),)


def _budget(case: Case) -> Outputs:
    q, k, v = pick(case.given, "q k v")
    heads = case.size["heads"]

    def of_head(q: Array, k: Array, v: Array) -> Outputs:
        return (attention_error(case, q, k, v, case.size["causal"]),)

    (error,) = each_head(of_head, q, spread_out(k, heads), spread_out(v, heads))
    return (rounding(case.truth, case.dtype) + error,)


def _heads_in_turn(case: Case) -> Outputs:
    """Head h of q takes head h modulo heads_kv, not the one of its group."""
    q, k, v = pick(case.given, "q k v")
    times = case.size["heads"] // case.size["heads_kv"]
    return (_attend(q, np.tile(k, (1, times, 1, 1)), np.tile(v, (1, times, 1, 1)), case.size["causal"]),)


def _mask_from_the_start(case: Case) -> Outputs:
    """The first query sees the first key: wrong where there are more keys than queries."""
    q, k, v = pick(case.given, "q k v")
    heads = case.size["heads"]
    values = scores(q, spread_out(k, heads))
    rows, columns = np.indices(values.shape[-2:])
    return (softmax(np.where(columns > rows, -np.inf, values)) @ spread_out(v, heads),)


def _coarse_scores(case: Case) -> Outputs:
    """Scores in half precision, as an unfused product stores them."""
    q, k, v = pick(case.given, "q k v")
    heads = case.size["heads"]
    digits = {"f32": 11, "f16": 11, "bf16": 8}[case.dtype.name]
    values = masked(coarse(scores(q, spread_out(k, heads)), digits), case.size["causal"])
    return (softmax(values) @ spread_out(v, heads),)


def apart(draw: Draw, shape: Shape) -> Array:
    """Values that grow along the sequence: the running maximum moves with every tile, by far."""
    return normal(draw, shape) + np.linspace(-2, 2, shape[-2])[:, None] * 2


SIZES = (
    Size(
        "tiny",
        {"batch": 2, "heads": 4, "heads_kv": 2, "n": 24, "n_kv": 40, "d": 64, "causal": 1},
        "grouped heads, more keys than queries, no whole tiles",
    ),
    Size(
        "tiny_full",
        {"batch": 1, "heads": 2, "heads_kv": 2, "n": 33, "n_kv": 17, "d": 64, "causal": 0},
        "fewer keys than queries, odd lengths, no mask",
    ),
    Size(
        "llama_3_8b",
        {"batch": 1, "heads": 32, "heads_kv": 8, "n": 2048, "n_kv": 2048, "d": 128, "causal": 1},
        "Llama 3 8B: 32 heads, 8 of keys and values, 2048 tokens",
    ),
    Size(
        "gpt2",
        {"batch": 8, "heads": 12, "heads_kv": 12, "n": 1024, "n_kv": 1024, "d": 64, "causal": 1},
        "GPT-2: 12 heads, 8 sequences of 1024 tokens",
    ),
    Size(
        "vit_b_16",
        {"batch": 16, "heads": 12, "heads_kv": 12, "n": 197, "n_kv": 197, "d": 64, "causal": 0},
        "ViT-B/16: 12 heads, 197 tokens, 16 pictures",
    ),
)
DISTRIBUTIONS = (
    *(one for one in standard() if one.name not in ("large",)),
    inputs(
        "peaked",
        "queries and keys of scale 4: one key has nearly all the weight",
        normal,
        None,
        q=normal_times(4.0),
        k=normal_times(4.0),
    ),
    inputs(
        "apart",
        "queries and keys grow along the sequence: the running maximum moves with every tile",
        normal,
        None,
        q=apart,
        k=apart,
    ),
)
PAIRS = "(n * n_kv - causal * (n * (n - 1) // 2))"
"""Pairs of a query and a key that it sees."""

ATTENTION = Operator(
    name="attention",
    computes="out = softmax(q kᵀ / √d) v; causal: query i sees keys up to i + n_kv − n",
    family="attention",
    inputs=(
        Parameter("q", "batch heads n d", "queries"),
        Parameter("k", "batch heads_kv n_kv d", "keys, each head for heads / heads_kv neighbouring ones of q"),
        Parameter("v", "batch heads_kv n_kv d", "values, likewise"),
    ),
    outputs=(Parameter("out", "batch heads n d", "means of the values, weighted"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=SIZES,
    distributions=DISTRIBUTIONS,
    reference=_reference,
    budget=_budget,
    derivation=DERIVATION,
    flops=Formula(f"3 * batch * heads * {PAIRS}"),
    matrix_flops=Formula(f"4 * batch * heads * {PAIRS} * d"),
    wrong=(
        Wrong("the mask is ignored", lambda case: case.computed({"causal": 0})),
        Wrong("the mask begins at the first key", _mask_from_the_start),
        Wrong("heads take keys in turn, not by groups", _heads_in_turn),
        Wrong("scores are not scaled", lambda case: case.computed(q=case.given["q"] * math.sqrt(case.size["d"]))),
        Wrong("scores in half precision", _coarse_scores),
        Wrong(
            "the last key is missing",
            lambda case: (_attend(case.given["q"], case.given["k"][:, :, :-1], case.given["v"][:, :, :-1], 0),),
        ),
    ),
)
