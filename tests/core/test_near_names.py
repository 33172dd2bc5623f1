"""An unknown name offers those that are near, else all of few or some of many."""

from __future__ import annotations

import pytest

from triptych.core.counters import known_counters
from triptych.core.errors import UnknownCounter, UnknownName
from triptych.execution.targets import check_target


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("memchek", "did you mean memcheck?"),
        ("synccheck", "known: initcheck, memcheck, racecheck"),
        ("", "known: initcheck, memcheck, racecheck"),
    ],
)
def test_of_few(name: str, hint: str) -> None:
    assert UnknownName.of("check", name, ("racecheck", "memcheck", "initcheck")).hint == hint


def test_of_many_the_nearest_and_where_all_are() -> None:
    with pytest.raises(UnknownCounter, match="unknown counter 'cycles'") as caught:
        known_counters("cycles")
    assert caught.value.hint is not None
    nearest, _, place = caught.value.hint.partition("; all: ")
    assert nearest.startswith("the nearest of ")
    assert nearest.count(",") == 4
    assert place == "docs/reference/counters.md"


@pytest.mark.parametrize(
    ("target", "machine", "hint"),
    [
        ("sm_42", None, "did you mean sm_75 or sm_80 or sm_86?"),
        ("sm_91", "gpu", "did you mean sm_88 or sm_89 or sm_90?"),
        ("sm_999", "gpu", "did you mean sm_110 or sm_120 or sm_121?"),
        ("compute_80", None, "did you mean sm_75 or sm_80 or sm_86?"),
        ("tn2", "neuron", "did you mean trn2?"),
        ("sm_80", "neuron", "known: inf2, trn1, trn2, trn3"),
    ],
)
def test_targets_are_near_by_their_numbers(target: str, machine: str | None, hint: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown compile target '{target}'") as caught:
        check_target(target, machine)
    assert caught.value.hint == hint
