"""Keys in ascending order, each with its value; equal keys stay in order."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import pick
from triptych.operators.case import Case
from triptych.operators.draw import Draw
from triptych.operators.operator import (
    NOTHING,
    Array,
    Arrays,
    Distribution,
    Operator,
    Outputs,
    Parameter,
    Size,
    Values,
    Wrong,
)


def _by(given: Arrays, order: Array) -> Outputs:
    keys, values = pick(given, "keys values")
    return keys[order], values[order]


def _reference(given: Arrays, size: Values) -> Outputs:
    return _by(given, np.argsort(given["keys"], kind="stable"))


def _budget(case: Case) -> Outputs:
    return tuple(np.zeros(one.shape) for one in case.expected)


def _with_numbers(keys: Array) -> Arrays:
    return {"keys": keys, "values": np.arange(len(keys))}


def _any(draw: Draw) -> Arrays:
    """Any numbers of T's range, of both signs."""
    count = draw.size["n"]
    if draw.dtype.is_float:
        return _with_numbers(draw.random.standard_normal(count) * 10.0 ** draw.random.integers(-30, 30, count))
    return _with_numbers(draw.random.integers(-(1 << 31), 1 << 31, count))


def _few(draw: Draw) -> Arrays:
    return _with_numbers(draw.random.integers(-3, 4, draw.size["n"]))


def _descending(draw: Draw) -> Arrays:
    return _with_numbers(np.arange(draw.size["n"])[::-1] - draw.size["n"] // 2)


def _infinite(draw: Draw) -> Arrays:
    """Zero, the ends of T's range and, of floating-point types, infinities and the smallest numbers."""
    if draw.dtype.is_float:
        return _with_numbers(draw.random.choice([-np.inf, -3e38, -1e-40, 0.0, 1e-40, 3e38, np.inf], draw.size["n"]))
    return _with_numbers(draw.random.choice([-(1 << 31), -1, 0, 1, (1 << 31) - 1], draw.size["n"]))


def _unstable(case: Case) -> Outputs:
    """Equal keys in reverse."""
    keys = case.given["keys"]
    return _by(case.given, len(keys) - 1 - np.argsort(keys[::-1], kind="stable"))


def _by_bits(case: Case) -> Outputs:
    """Keys compared as the unsigned numbers that their bits are: negative ones come last."""
    bits = case.inputs["keys"].view(np.uint32)
    return _by(case.given, np.argsort(bits, kind="stable"))


def _by_parts(case: Case) -> Outputs:
    """Parts of the array are sorted and not merged."""
    keys = case.given["keys"]
    parts = [start + np.argsort(keys[start : start + 256], kind="stable") for start in range(0, len(keys), 256)]
    return _by(case.given, np.concatenate(parts))


SORT = Operator(
    name="sort",
    computes="sorted_keys = keys in ascending order, sorted_values[j] = the value of the key that came to j; stable",
    family="sort",
    inputs=(
        Parameter("keys", "n", "keys; no NaN and no −0"),
        Parameter("values", "n", "what goes with them", "s32"),
    ),
    outputs=(
        Parameter("sorted_keys", "n", "keys in ascending order"),
        Parameter("sorted_values", "n", "their values", "s32"),
    ),
    dtypes=("f32", "s32"),
    sizes=(
        Size("tiny", {"n": 1003}, "no multiple of a block"),
        Size("experts", {"n": 8 * 16384}, "Qwen3 30B-A3B: 8 experts for each of 16384 tokens, sorted by expert"),
        Size("long", {"n": 1 << 24}, "beyond any cache"),
    ),
    distributions=(
        Distribution("any", "numbers over all of T's range", _any),
        Distribution("duplicates", "seven different keys", _few),
        Distribution("descending", "in the reverse of the order that they shall have", _descending),
        Distribution("ends", "zero, the ends of T's range, infinities and subnormal numbers", _infinite),
    ),
    reference=_reference,
    budget=_budget,
    derivation="none: keys and values are moved",
    flops=NOTHING,
    wrong=(
        Wrong("equal keys in reverse", _unstable),
        Wrong("keys compared as unsigned numbers", _by_bits),
        Wrong("parts are sorted, not merged", _by_parts),
        Wrong("values stay where they were", lambda case: (case.truth, case.given["values"])),
        Wrong("descending", lambda case: _by(case.given, np.argsort(-case.given["keys"], kind="stable"))),
    ),
)
