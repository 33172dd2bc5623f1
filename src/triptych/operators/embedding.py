"""Rows of a table, by number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.operators.case import Case
from triptych.operators.draw import Draw, inputs, normal, special
from triptych.operators.operator import NOTHING, Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _reference(given: Arrays, size: Values) -> Outputs:
    return (given["table"][given["ids"]],)


def _budget(case: Case) -> Outputs:
    return (np.zeros(case.truth.shape),)


def _any(draw: Draw) -> Mapping[str, Array]:
    """Any rows, the first and the last among them."""
    ids = draw.random.integers(0, draw.size["vocabulary"], draw.size["tokens"])
    ids[:2] = 0, draw.size["vocabulary"] - 1
    return {"ids": ids}


def _few(draw: Draw) -> Mapping[str, Array]:
    """Two rows again and again."""
    return {"ids": draw.random.choice(draw.random.integers(0, draw.size["vocabulary"], 2), draw.size["tokens"])}


EMBEDDING = Operator(
    name="embedding",
    computes="out[t] = table[ids[t]]",
    family="data movement",
    inputs=(
        Parameter("ids", "tokens", "numbers of rows", "s32"),
        Parameter("table", "vocabulary d", "the rows", least="d"),
    ),
    outputs=(Parameter("out", "tokens d", "the rows asked for"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"tokens": 29, "vocabulary": 50, "d": 72}, "rows of whole vectors"),
        Size("gpt2", {"tokens": 8 * 1024, "vocabulary": 50257, "d": 768}, "GPT-2: 8 sequences of 1024 tokens"),
        Size("llama_3_8b", {"tokens": 2048, "vocabulary": 128256, "d": 4096}, "Llama 3 8B: 2048 tokens"),
    ),
    distributions=(
        inputs("normal", "any rows of standard normal values", normal, _any),
        inputs("repeated", "two rows again and again", normal, _few),
        inputs("special", "rows with NaN, both infinities and zero among them", special, _any),
    ),
    reference=_reference,
    budget=_budget,
    derivation="none: elements are copied, NaN and infinities too. Of the table, one row may be all that is asked for",
    flops=NOTHING,
    wrong=(
        Wrong("rows are one off", lambda case: case.computed(table=np.roll(case.given["table"], 1, 0))),
        Wrong(
            "the last token is missing", lambda case: (np.append(case.truth[:-1], np.zeros_like(case.truth[:1]), 0),)
        ),
        Wrong("numbers of rows in 5 bits", lambda case: case.computed(ids=case.given["ids"] % 32)),
    ),
)
