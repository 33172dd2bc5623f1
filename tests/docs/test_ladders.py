"""The ladders' figures on the page of kernels: some are measured again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generators.ladders import LADDERS, measure

RECORDED = json.loads((Path(__file__).parents[2] / "docs/data/kernel_ladders.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("ladder", "name"), [("matmul", "cuda.matmul_naive"), ("NKI matmul", "nki.matmul_fully_blocked")]
)
def test_figures(ladder: str, name: str) -> None:
    (rung,) = [one for one in LADDERS[ladder].rungs if one.name == name]
    assert measure(LADDERS[ladder], rung) == RECORDED[ladder][name]


def test_all_are_recorded() -> None:
    assert {name: list(rungs) for name, rungs in RECORDED.items()} == {
        name: [rung.name for rung in one.rungs] for name, one in LADDERS.items()
    }
