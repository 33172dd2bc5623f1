"""Attention of one new token a sequence over keys and values that lie in pages, anywhere in a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from triptych.operators.arithmetic import pick, softmax
from triptych.operators.attention import DERIVATION, attention_error, scores, spread_out
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Sampler, Shape, inputs, normal, normal_times, tiny
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Distribution, Operator, Outputs, Parameter, Size, Values, Wrong


def _by_sequence(given: Arrays, function: Callable[[Array, Array, Array], Array]) -> Array:
    """A function of each sequence's query, keys and values, `(heads, n, d)` each."""
    q, k_pages, v_pages, page_table, lengths = pick(given, "q k_pages v_pages page_table lengths")
    rows: list[Array] = []
    for query, pages, length in zip(q, page_table, lengths, strict=True):
        keys, values = (x[pages].reshape(-1, *x.shape[2:])[:length].swapaxes(0, 1) for x in (k_pages, v_pages))
        heads = len(query)
        rows.append(function(query[:, None], spread_out(keys, heads), spread_out(values, heads))[:, 0])
    return np.stack(rows)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_by_sequence(given, lambda q, k, v: softmax(scores(q, k)) @ v),)


def _budget(case: Case) -> Outputs:
    error = _by_sequence(case.given, lambda q, k, v: attention_error(case, q, k, v, 0))
    return (rounding(case.truth, case.dtype) + error,)


def _paged(name: str, meaning: str, sampler: Sampler, full: bool = False) -> Distribution:
    def also(draw: Draw) -> Mapping[str, Array]:
        """Pages in any order; what no sequence has come to yet holds NaN, which must not be read."""
        sequences, pages = draw.shapes["page_table"]
        page = draw.size["page"]
        table = draw.random.permutation(draw.size["pool"])[: sequences * pages].reshape(sequences, pages)
        lengths = draw.random.integers(pages * page // 2, pages * page + 1, sequences)
        if full:
            lengths[:] = pages * page
        used = np.zeros((draw.size["pool"], page), bool)
        for row, length in zip(table, lengths, strict=True):
            used[row] = (np.arange(pages * page) < length).reshape(pages, page)
        caches = {one: sampler(draw, draw.shapes[one]) for one in ("k_pages", "v_pages")}
        poisoned = {one: np.where(used[:, :, None, None], x, np.nan) for one, x in caches.items()}
        return {**poisoned, "page_table": table, "lengths": lengths}

    return inputs(name, meaning, sampler, also)


def _drifting(draw: Draw, shape: Shape) -> Array:
    return normal(draw, shape) + 2 * draw.random.standard_normal((shape[0], *[1] * (len(shape) - 1)))


def _in_order(case: Case) -> Outputs:
    pages = np.arange(case.given["page_table"].size).reshape(case.given["page_table"].shape)
    return case.computed(page_table=pages)


_LEAST = "sequences * (pages * page // 2) * heads_kv * d"
"""Sequences fill half of their pages at least."""

PAGED_ATTENTION = Operator(
    name="paged_attention",
    computes="out[s] = softmax(q[s] kᵀ / √d) v, over the first lengths[s] tokens of the pages page_table[s]",
    family="attention",
    inputs=(
        Parameter("q", "sequences heads d", "a query for each head of each sequence"),
        Parameter("k_pages", "pool page heads_kv d", "the pool of keys, by pages", least=_LEAST),
        Parameter("v_pages", "pool page heads_kv d", "the pool of values, likewise", least=_LEAST),
        Parameter("page_table", "sequences pages", "each sequence's pages, in order", "s32"),
        Parameter("lengths", "sequences", "each sequence's tokens, the new one included", "s32"),
    ),
    outputs=(Parameter("out", "sequences heads d", "means of the values, weighted"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size(
            "tiny",
            {"sequences": 3, "heads": 4, "heads_kv": 2, "d": 64, "pool": 20, "page": 8, "pages": 5},
            "grouped heads, pages left over",
        ),
        Size(
            "llama_3_8b",
            {"sequences": 64, "heads": 32, "heads_kv": 8, "d": 128, "pool": 8192, "page": 16, "pages": 128},
            "Llama 3 8B in vLLM's pages of 16 tokens: 64 requests of up to 2048 tokens",
        ),
        Size(
            "llama_3_70b",
            {"sequences": 32, "heads": 64, "heads_kv": 8, "d": 128, "pool": 16384, "page": 16, "pages": 512},
            "Llama 3 70B in vLLM's pages of 16 tokens: 32 requests of up to 8192 tokens",
        ),
    ),
    distributions=(
        _paged("normal", "standard normal values; NaN where no token lies; pages in any order", normal),
        _paged("full", "normal; each sequence fills its pages", normal, full=True),
        _paged("peaked", "values of scale 3: few keys have the weight", normal_times(3.0)),
        _paged("drifting", "pages that differ in their means: the running maximum moves with every page", _drifting),
        _paged("tiny", "values whose products come near the type's smallest normal number", tiny()),
    ),
    reference=_reference,
    budget=_budget,
    derivation=DERIVATION,
    flops=Formula("3 * sequences * heads * (pages * page // 2)"),
    matrix_flops=Formula("4 * sequences * heads * (pages * page // 2) * d"),
    wrong=(
        Wrong("pages in order, without the table", _in_order),
        Wrong("the last token is missing", lambda case: case.computed(lengths=case.given["lengths"] - 1)),
        Wrong(
            "whole pages: lengths are ignored",
            lambda case: case.computed(
                lengths=np.full_like(case.given["lengths"], case.size["pages"] * case.size["page"])
            ),
        ),
        Wrong(
            "all sequences as long as the first",
            lambda case: case.computed(lengths=np.full_like(case.given["lengths"], case.given["lengths"][0])),
        ),
        Wrong("queries are not scaled", lambda case: case.computed(q=case.given["q"] * np.sqrt(case.size["d"]))),
    ),
)
