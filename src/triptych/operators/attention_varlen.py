"""Causal attention over sequences of different lengths, one behind the other without padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from triptych.operators.arithmetic import pick, softmax
from triptych.operators.attention import DERIVATION, attention_error, masked, scores, spread_out
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, inputs, normal, normal_times, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _by_sequence(given: Arrays, function: Callable[[Array, Array, Array], Array]) -> Array:
    """A function of each sequence's q, k and v, `(heads, n, d)` each, put together again."""
    q, k, v, offsets = pick(given, "q k v offsets")
    parts: list[Array] = []
    for first, last in pairwise(offsets):
        if first == last:
            continue
        queries, keys, values = (x[first:last].swapaxes(0, 1) for x in (q, k, v))
        heads = queries.shape[0]
        parts.append(function(queries, spread_out(keys, heads), spread_out(values, heads)).swapaxes(0, 1))
    return np.concatenate(parts)


def _attend(given: Arrays, causal: int) -> Array:
    return _by_sequence(given, lambda q, k, v: softmax(masked(scores(q, k), causal)) @ v)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_attend(given, size["causal"]),)


def _budget(case: Case) -> Outputs:
    causal = case.size["causal"]
    error = _by_sequence(case.given, lambda q, k, v: attention_error(case, q, k, v, causal))
    return (rounding(case.truth, case.dtype) + error,)


def _cuts(draw: Draw) -> Mapping[str, Array]:
    """Lengths anywhere between 1 and all."""
    tokens, sequences = draw.size["tokens"], draw.size["sequences"]
    cuts = np.sort(draw.random.choice(np.arange(1, tokens), sequences - 1, replace=False))
    return {"offsets": np.concatenate(([0], cuts, [tokens]))}


def _short(draw: Draw) -> Mapping[str, Array]:
    """Sequences of one token, and a last one of all others."""
    return {"offsets": np.append(np.arange(draw.size["sequences"]), draw.size["tokens"])}


def _one_sequence(case: Case) -> Outputs:
    return case.computed(offsets=np.array([0, case.size["tokens"]]))


def _early(case: Case) -> Outputs:
    offsets = case.given["offsets"].copy()
    offsets[1:-1] -= 1
    return case.computed(offsets=offsets)


_AVERAGE = "(tokens * (tokens // sequences))"
"""Pairs of a query and a key of its sequence are fewest where all sequences are as long."""

ATTENTION_VARLEN = Operator(
    name="attention_varlen",
    computes="attention within each sequence: tokens from offsets[s] up to offsets[s + 1]",
    family="attention",
    inputs=(
        Parameter("q", "tokens heads d", "queries of all sequences"),
        Parameter("k", "tokens heads_kv d", "keys, each head for heads / heads_kv neighbouring ones of q"),
        Parameter("v", "tokens heads_kv d", "values, likewise"),
        Parameter("offsets", "sequences+1", "each sequence's first token, and the number of tokens", "s32"),
    ),
    outputs=(Parameter("out", "tokens heads d", "means of the values, weighted"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size(
            "tiny",
            {"tokens": 61, "sequences": 4, "heads": 4, "heads_kv": 2, "d": 64, "causal": 1},
            "sequences that no tile divides",
        ),
        Size(
            "llama_3_8b_prefill",
            {"tokens": 8192, "sequences": 16, "heads": 32, "heads_kv": 8, "d": 128, "causal": 1},
            "Llama 3 8B: 16 requests of 512 tokens on average",
        ),
        Size(
            "bert_base",
            {"tokens": 4096, "sequences": 32, "heads": 12, "heads_kv": 12, "d": 64, "causal": 0},
            "BERT base: 12 heads, 32 texts of 128 tokens on average",
        ),
    ),
    distributions=(
        *(one for one in standard(also=_cuts) if one.name != "large"),
        inputs(
            "peaked",
            "queries and keys of scale 4: one key has nearly all the weight",
            normal,
            _cuts,
            q=normal_times(4.0),
            k=normal_times(4.0),
        ),
        inputs("short", "normal; sequences of one token each, but for the last", normal, _short),
    ),
    reference=_reference,
    budget=_budget,
    derivation=DERIVATION,
    flops=Formula(f"3 * heads * ({_AVERAGE} - causal * ({_AVERAGE} - tokens) // 2)"),
    matrix_flops=Formula(f"4 * d * heads * ({_AVERAGE} - causal * ({_AVERAGE} - tokens) // 2)"),
    wrong=(
        Wrong("the mask is ignored", lambda case: case.computed({"causal": 0})),
        Wrong("sequences see each other", _one_sequence),
        Wrong("sequences end a token too early", _early),
        Wrong("queries are not scaled", lambda case: case.computed(q=case.given["q"] * np.sqrt(case.size["d"]))),
    ),
)
