"""Budgets hold for f32 arithmetic and have power: every wrong variant exceeds them."""

from __future__ import annotations

from functools import cache

import pytest

from triptych.operators import OPERATORS
from triptych.operators.power import ANY, Proof, right, wrong

KINDS = [(name, dtype) for name, one in OPERATORS.items() for dtype in one.dtypes]


@cache
def proofs(name: str, dtype: str) -> list[Proof]:
    return wrong(OPERATORS[name], dtype)


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_right_results_stay_within_the_budget(name: str, dtype: str) -> None:
    """In each distribution, the edge values among them; with another seed too."""
    for seed in (0, 1):
        proof = right(OPERATORS[name], dtype, seed)
        assert proof.error <= 1, proof


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_wrong_results_exceed_the_budget(name: str, dtype: str) -> None:
    assert [proof for proof in proofs(name, dtype) if not proof.error > 1] == []
    assert len(OPERATORS[name].wrong) >= 3


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_spoilt_results_exceed_it_with_ordinary_inputs(name: str, dtype: str) -> None:
    """Zeros, a constant, a shift, one element and lower precision need no edge values to be told."""
    spoilt = {one.name for one in ANY}
    ordinary = OPERATORS[name].distributions[0].name
    found = {proof.variant: proof.distribution for proof in proofs(name, dtype) if proof.variant in spoilt}
    assert len(found) >= len(ANY) - 1
    assert set(found.values()) == {ordinary}, found
