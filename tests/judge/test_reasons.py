"""The table of reasons, and what is said of a code; which kernels are references."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import triptych as tt
from triptych.core.checks import CHECKS
from triptych.judge import OUTCOMES, REASONS, Outcome
from triptych.judge.baselines import REFERENCES, reference_of
from triptych.operators import OPERATORS
from triptych.report.explanations import explanation


def test_the_table() -> None:
    assert {row.outcome for row in REASONS.values()} == set(Outcome) - {Outcome.PASSED}
    assert set(OUTCOMES) == set(Outcome)
    assert not set(REASONS) & set(CHECKS)
    for code, row in REASONS.items():
        assert re.fullmatch("[a-z_]+", code)
        assert row.meaning.endswith(".")
        assert row.advice.endswith(".")


def test_what_is_said_of_a_code() -> None:
    assert explanation("decoy").startswith("decoy: a reason for the verdict 'cheated'\n")
    assert REASONS["decoy"].advice in explanation("decoy")
    assert explanation("memcheck").startswith("memcheck: a check whose findings are errors (the GPU: always on")
    with pytest.raises(tt.UnknownName, match="did you mean decoy"):
        explanation("decoi")


@pytest.mark.parametrize("language", REFERENCES)
def test_references_are_kernels_of_ours(language: str) -> None:
    assert tt.__file__ is not None
    tree = ast.parse((Path(tt.__file__).parent / "kernels" / language / "__init__.py").read_text())
    names = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for operator, function in REFERENCES[language].items():
        assert operator in OPERATORS
        assert function in names
        candidate = reference_of(operator, language)
        assert candidate is not None
        assert candidate.source == f"from triptych.kernels.{language} import {function} as solution\n"
    assert reference_of("sort", language) is None
