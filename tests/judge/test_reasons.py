"""The table of reasons, and what is said of a code; which kernels are references."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import triptych as tt
from triptych.core.checks import CHECKS
from triptych.judge import OUTCOMES, REASONS, Outcome
from triptych.judge.baselines import reference_of
from triptych.judge.reasons import JUDGE_ERROR
from triptych.report.explanations import explanation


def test_the_table() -> None:
    assert {row.outcome for row in REASONS.values()} == set(Outcome) - {Outcome.PASSED}
    assert set(OUTCOMES) == set(Outcome)
    assert not set(REASONS) & set(CHECKS)
    for code, row in REASONS.items():
        assert re.fullmatch("[a-z_]+", code)
        assert row.meaning.endswith(".")
        assert row.advice.endswith(".")


def test_every_reason_is_given_somewhere() -> None:
    """A row that no code names would be documented, and never told."""
    assert tt.__file__ is not None
    named = {JUDGE_ERROR}
    for path in Path(tt.__file__).parent.rglob("*.py"):
        if path.name != "reasons.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            named |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert set(REASONS) <= named, set(REASONS) - named


def test_what_is_said_of_a_code() -> None:
    assert explanation("decoy").startswith("decoy: a reason for the verdict 'cheated'\n")
    assert REASONS["decoy"].advice in explanation("decoy")
    assert explanation("memcheck").startswith("memcheck: a check whose findings are errors (the GPU: always on")
    with pytest.raises(tt.UnknownName, match="did you mean decoy"):
        explanation("decoi")


@pytest.mark.parametrize(
    ("operator", "language", "function"),
    [
        ("softmax", "cuda", "softmax"),
        ("matmul", "cuda", "matmul_tiled"),
        ("attention", "cuda", "attention_tiled"),
        ("matmul", "triton", "matmul"),
        ("quantised_matmul", "nki", "quantised_matmul"),
        ("moe_matmul", "nki", None),  # its host sorts tokens by their values
        ("grouped_matmul", "triton", None),  # it takes pairs of matrices, not what the operator gives
        ("sort", "nki", None),
        ("softmax", "ptx", None),
    ],
)
def test_references_are_kernels_of_ours(operator: str, language: str, function: str | None) -> None:
    candidate = reference_of(operator, language)
    assert (None if candidate is None else candidate.source) == (
        None if function is None else f"from triptych.kernels.{language} import {function} as solution\n"
    )
