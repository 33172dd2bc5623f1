"""How often each number occurs."""

from __future__ import annotations

import numpy as np

from triptych.operators.case import Case
from triptych.operators.draw import Draw
from triptych.operators.operator import (
    NOTHING,
    Arrays,
    Distribution,
    Operator,
    Outputs,
    Parameter,
    Size,
    Values,
    Wrong,
)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (np.bincount(given["x"], minlength=size["bins"]),)


def _budget(case: Case) -> Outputs:
    return (np.zeros(case.truth.shape),)


def _any(draw: Draw) -> Arrays:
    return {"x": draw.random.integers(0, draw.size["bins"], draw.size["n"])}


def _ends(draw: Draw) -> Arrays:
    return {"x": draw.random.choice([0, draw.size["bins"] - 1], draw.size["n"])}


def _one(draw: Draw) -> Arrays:
    return {"x": np.full(draw.size["n"], draw.size["bins"] // 2)}


def _lost(case: Case) -> Outputs:
    """Lanes of a warp that meet in a bin count as one, as additions without atomics do."""
    x = case.given["x"]
    counts = np.zeros(case.size["bins"], np.int64)
    for start in range(0, len(x), 32):
        counts[np.unique(x[start : start + 32])] += 1
    return (counts,)


HISTOGRAM = Operator(
    name="histogram",
    computes="counts[b] = how many x[i] are b",
    family="scan",
    inputs=(Parameter("x", "n", "numbers from 0 up to bins − 1"),),
    outputs=(Parameter("counts", "bins", "how often each occurs, zeros included", "s32"),),
    dtypes=("s32", "u8"),
    sizes=(
        Size("tiny", {"n": 1003, "bins": 96}, "no multiple of a block"),
        Size("picture", {"n": 3840 * 2160, "bins": 256}, "a picture of 3840 × 2160, a channel of 8 bits"),
        Size("experts", {"n": 8 * 16384, "bins": 128}, "Qwen3 30B-A3B: 8 of 128 experts for each of 16384 tokens"),
    ),
    distributions=(
        Distribution("uniform", "every number as often", _any),
        Distribution("ends", "the first and the last number alone", _ends),
        Distribution("one_bin", "one number: all additions meet in one place", _one),
    ),
    reference=_reference,
    budget=_budget,
    derivation="none: counts are exact",
    flops=NOTHING,
    wrong=(
        Wrong("additions that meet are lost", _lost),
        Wrong("the last number is missing", lambda case: (np.append(case.truth[:-1], 0),)),
        Wrong("the last element is missing", lambda case: case.computed(x=case.given["x"][:-1])),
        Wrong("counts in 8 bits", lambda case: (case.truth % 256,)),
    ),
)
