"""The selective scan of Mamba: a recurrence whose coefficients depend on the token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.arithmetic import coarse, pick
from triptych.operators.budgets import UNIT, rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import Draw, Sampler, inputs, normal, normal_times
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Distribution, Operator, Outputs, Parameter, Size, Values, Wrong


def _scan(given: Arrays, digits: int = 0) -> Array:
    """The recurrence, with a state that is rounded to so many binary digits after each step, if any."""
    u, delta, a, b, c, d = pick(given, "u delta a b c d")
    batch, channels, n = u.shape
    state = np.zeros((batch, channels, a.shape[1]), u.dtype)
    result = np.empty_like(u)
    for t in range(n):
        step = delta[:, :, t, None]
        state = np.exp(step * a) * state + step * b[:, None, :, t] * u[:, :, t, None]
        state = coarse(state, digits) if digits else state
        result[..., t] = (state * c[:, None, :, t]).sum(-1) + d * u[..., t]
    return result


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_scan(given),)


def _budget(case: Case) -> Outputs:
    """The same recurrence, of absolute values and of errors beside them."""
    u, delta, a, b, c, d = pick(case.given, "u delta a b c d")
    batch, channels, n = u.shape
    size = np.zeros((batch, channels, a.shape[1]))
    error = np.zeros_like(size)
    result = np.empty_like(u)
    for t in range(n):
        exponent = delta[:, :, t, None] * a
        factor = np.exp(exponent)
        term = np.abs(delta[:, :, t, None] * b[:, None, :, t] * u[:, :, t, None])
        error = factor * (error + UNIT * (2 * np.abs(exponent) + 10) * size) + 3 * UNIT * term
        size = factor * size + term
        error = error + UNIT * size
        weight = np.abs(c[:, None, :, t])
        terms = (size * weight).sum(-1) + np.abs(d * u[..., t])
        result[..., t] = (error * weight).sum(-1) + sums(terms, a.shape[1] + 2)
    return (rounding(case.truth, case.dtype) + result,)


def _coefficients(scale: float, sampler: Sampler) -> Distribution:
    """Steps above 0 and decays below 0, as softplus and −exp leave them."""

    def also(draw: Draw) -> Mapping[str, Array]:
        steps = scale * np.log1p(np.exp(normal(draw, draw.shapes["delta"])))
        states = np.tile(np.arange(1, draw.size["state"] + 1), (draw.size["channels"], 1))
        return {"delta": steps, "a": -states.astype(np.float64)}

    names = {0.1: "normal", 0.001: "long_memory", 3.0: "short_memory"}
    meanings = {
        "normal": "normal values, steps near 0.1, decays from −1 on",
        "long_memory": "steps near 0.001: the state keeps all that came, sums are long",
        "short_memory": "steps near 3: the state forgets at once",
    }
    return inputs(names[scale], meanings[names[scale]], sampler, also)


def _half_state(case: Case) -> Outputs:
    return (_scan(case.given, {"f32": 11, "f16": 11, "bf16": 8}[case.dtype.name]),)


def _by_parts(case: Case) -> Outputs:
    """Parts of the sequence begin with no state."""
    along = {"u", "delta", "b", "c"}
    n = case.size["n"]
    parts = [
        _scan({name: x[..., at : at + 16] if name in along else x for name, x in case.given.items()})
        for at in range(0, n, 16)
    ]
    return (np.concatenate(parts, -1),)


MAMBA_SCAN = Operator(
    name="mamba_scan",
    computes="h[t] = exp(delta[t] a) h[t − 1] + delta[t] b[t] u[t], h before the first = 0; y[t] = Σ_state c[t] h[t]"
    " + d u[t]",
    family="scan",
    inputs=(
        Parameter("u", "batch channels n", "sequences"),
        Parameter("delta", "batch channels n", "steps, above 0"),
        Parameter("a", "channels state", "decays, below 0", "f32"),
        Parameter("b", "batch state n", "what comes into the state"),
        Parameter("c", "batch state n", "what is seen of the state"),
        Parameter("d", "channels", "what passes by the state", "f32"),
    ),
    outputs=(Parameter("y", "batch channels n", "sequences"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"batch": 2, "channels": 6, "state": 8, "n": 51}, "no multiples of anything"),
        Size(
            "mamba_130m",
            {"batch": 8, "channels": 1536, "state": 16, "n": 2048},
            "Mamba 130M: 1536 channels, 16 states of each, 8 sequences of 2048 tokens",
        ),
        Size(
            "mamba_2_8b",
            {"batch": 1, "channels": 5120, "state": 16, "n": 2048},
            "Mamba 2.8B: 5120 channels, 16 states of each, 2048 tokens",
        ),
    ),
    distributions=(
        _coefficients(0.1, normal),
        _coefficients(0.001, normal_times(4.0)),
        _coefficients(3.0, normal),
    ),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T; the recurrence's own error, carried along: a step multiplies it by the decay and adds"
    " 2 |delta a| + 10 roundings of the state, 3 of what comes in and one of their sum; state + 2 roundings of y's"
    " terms",
    flops=Formula("batch * channels * (n - 1) * (7 * state + 2)"),
    wrong=(
        Wrong("the state in half precision", _half_state),
        Wrong("parts of a sequence by themselves", _by_parts),
        Wrong("d is missing", lambda case: case.computed(d=np.zeros_like(case.given["d"]))),
        Wrong("the state is seen before the step", lambda case: case.computed(c=np.roll(case.given["c"], -1, -1))),
        Wrong(
            "steps are not applied to b",
            lambda case: (_scan({**case.given, "b": case.given["b"] / np.maximum(case.given["delta"].mean(), 1e-6)}),),
        ),
    ),
)
