"""The gradients of attention, from its inputs, its output and the logarithms of its sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from triptych.operators.arithmetic import exponentials, pick
from triptych.operators.attention import PAIRS, SIZES, Weights, apart, each_head, masked, scores, spread_out
from triptych.operators.budgets import UNIT, limits, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Sampler, inputs, normal, normal_times
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Distribution, Operator, Outputs, Parameter, Values, Wrong


def _turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _shared(gradient: Array, heads_kv: int) -> Array:
    """The gradient of each head of keys or values: summed up over the heads of q that share it."""
    batch, heads, n, d = gradient.shape
    return gradient.reshape(batch, heads_kv, heads // heads_kv, n, d).sum(2)


def _of_heads(compute: Callable[..., Outputs], given: Arrays, size: Values) -> Outputs:
    """Results for q, k and v from a head's inputs, a head at a time; those of shared keys and values summed up."""
    grad_out, q, k, v, out, log_sums = pick(given, "grad_out q k v out log_sums")
    k, v = (spread_out(x, size["heads"]) for x in (k, v))
    of_q, *of_shared = each_head(compute, grad_out, q, k, v, out, log_sums)
    return of_q, *(_shared(one, size["heads_kv"]) for one in of_shared)


def _gradients(given: Arrays, size: Values, *, scaled: bool = True, dots: bool = True) -> Outputs:
    number = given["q"].dtype.type
    factor = number(1 / math.sqrt(size["d"]) if scaled else 1)

    def of_head(grad_out: Array, q: Array, k: Array, v: Array, out: Array, log_sums: Array) -> Outputs:
        p = np.exp2(masked(scores(q, k), size["causal"]) * number(math.log2(math.e)) - log_sums[..., None])
        own = (grad_out * out).sum(-1, keepdims=True) if dots else 0
        ds = p * (grad_out @ _turned(v) - own) * factor
        return ds @ k, _turned(ds) @ q, _turned(p) @ grad_out

    return _of_heads(of_head, given, size)


def _reference(given: Arrays, size: Values) -> Outputs:
    return _gradients(given, size)


def _budget(case: Case) -> Outputs:
    size, kind = case.size, limits(case.dtype)
    factor, rows = 1 / math.sqrt(size["d"]), size["n"] * size["heads"] // size["heads_kv"]

    def of_head(grad_out: Array, q: Array, k: Array, v: Array, out: Array, log_sums: Array) -> Outputs:
        weights = Weights.of(q, k, size["causal"])
        p = np.exp2(masked(scores(q, k), size["causal"]) * math.log2(math.e) - log_sums[..., None])
        relative = weights.relative + 2 * UNIT * np.abs(log_sums[..., None])
        p_error = p * (relative + kind.unit) + kind.smallest / 2
        absolute = np.abs(grad_out) @ _turned(np.abs(v)) + (np.abs(grad_out) * np.abs(out)).sum(-1, keepdims=True)
        inner = np.abs(grad_out @ _turned(v) - (grad_out * out).sum(-1, keepdims=True))
        ds = p * inner * factor
        from_dots = factor * p * (relative * inner + sums(absolute, q.shape[-1] + 2))
        ds_error = from_dots + kind.unit * ds + kind.smallest / 2
        size_q = sums(ds @ np.abs(k), k.shape[-2]) + ds_error @ np.abs(k)
        size_k = sums(_turned(ds) @ np.abs(q), rows) + _turned(ds_error) @ np.abs(q)
        size_v = sums(_turned(p) @ np.abs(grad_out), rows) + _turned(p_error) @ np.abs(grad_out)
        return size_q, size_k, size_v

    errors = _of_heads(of_head, case.given, size)
    return tuple(rounding(one, case.dtype) + error for one, error in zip(case.expected, errors, strict=True))


def _forward(name: str, meaning: str, sampler: Sampler) -> Distribution:
    """Inputs of the forward pass by a sampler, and what it left, rounded as it rounds."""

    def also(draw: Draw) -> Mapping[str, Array]:
        stored = {name: sampler(draw, draw.shapes[name]) for name in ("q", "k", "v")}
        q, k, v = (x.astype(draw.dtype.numpy).astype(np.float64) for x in stored.values())
        heads = draw.size["heads"]

        def of_head(q: Array, k: Array, v: Array) -> Outputs:
            powers, total, largest = exponentials(masked(scores(q, k), draw.size["causal"]))
            return powers / total @ v, (np.log2(total) + largest * math.log2(math.e))[..., 0]

        out, log_sums = each_head(of_head, q, spread_out(k, heads), spread_out(v, heads))
        return {**stored, "out": out, "log_sums": log_sums}

    return inputs(name, f"{meaning}, with what the forward pass left of them", normal, also)


def _rounded_p(case: Case) -> Outputs:
    """Probabilities from log_sums that were rounded to half precision."""
    return case.computed(log_sums=case.given["log_sums"].astype(np.float16).astype(np.float64))


ATTENTION_BACKWARD = Operator(
    name="attention_backward",
    computes="p = exp2(q kᵀ log2 e / √d − log_sums); dS = p (grad_out vᵀ − Σ grad_out out) / √d; grad_q = dS k;"
    " grad_k = dSᵀ q; grad_v = pᵀ grad_out",
    family="attention",
    inputs=(
        Parameter("grad_out", "batch heads n d", "the gradient of attention's output"),
        Parameter("q", "batch heads n d", "queries"),
        Parameter("k", "batch heads_kv n_kv d", "keys, each head for heads / heads_kv neighbouring ones of q"),
        Parameter("v", "batch heads_kv n_kv d", "values, likewise"),
        Parameter("out", "batch heads n d", "attention's output"),
        Parameter("log_sums", "batch heads n", "log2 Σ exp(score) of each row", "f32"),
    ),
    outputs=(
        Parameter("grad_q", "batch heads n d", "the gradient of q"),
        Parameter("grad_k", "batch heads_kv n_kv d", "of k, summed up over the heads that share it"),
        Parameter("grad_v", "batch heads_kv n_kv d", "of v, likewise"),
    ),
    dtypes=("f32", "f16", "bf16"),
    sizes=SIZES,
    distributions=(
        _forward("normal", "standard normal values", normal),
        _forward("peaked", "values of scale 2: few keys have the weight", normal_times(2.0)),
        _forward("apart", "values that grow along the sequence", apart),
    ),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; p's error as attention's, with 2 |log_sums| roundings more; dS's: p's, that of"
    " grad_out vᵀ − Σ grad_out out (d + 2 roundings of absolute terms); p and dS rounded to T, for tensor cores; as"
    " many roundings of absolute terms as the last products have",
    flops=Formula(f"4 * batch * heads * {PAIRS}"),
    matrix_flops=Formula(f"10 * batch * heads * {PAIRS} * d"),
    wrong=(
        Wrong("the mask is ignored", lambda case: case.computed({"causal": 0})),
        Wrong("Σ grad_out out is not taken off", lambda case: _gradients(case.given, case.size, dots=False)),
        Wrong("dS is not scaled", lambda case: _gradients(case.given, case.size, scaled=False)),
        Wrong("log_sums in half precision", _rounded_p, ("f32", "f16")),
        Wrong(
            "natural logarithms for those of base 2",
            lambda case: case.computed(log_sums=case.given["log_sums"] * math.log(2)),
        ),
        Wrong(
            "one head's gradients for the group's",
            lambda case: (
                case.truth,
                *(one / (case.size["heads"] // case.size["heads_kv"]) for one in case.expected[1:]),
            ),
        ),
    ),
)
