"""An unknown name offers those that are near, else all of few or some of many."""

from __future__ import annotations

import pytest

from triptych.core.counter_table import COUNTED, NSIGHT_ALIASES
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


@pytest.mark.parametrize("name", ["cycles", "nope.counter"])
def test_of_many_where_all_are(name: str) -> None:
    with pytest.raises(UnknownCounter, match=f"unknown counter '{name}'") as caught:
        known_counters(name)
    known = len({*COUNTED, *NSIGHT_ALIASES})
    assert caught.value.hint == f"none of the {known} known ones is near; all: docs/reference/counters.md"


def test_aliases_are_offered_and_not_listed() -> None:
    assert (
        UnknownName.of("chip", "trainum2", ("trn1", "trn2"), aliases=("trainium2",)).hint == "did you mean trainium2?"
    )
    assert UnknownName.of("chip", "x", ("trn1", "trn2"), aliases=("trainium2",)).hint == "known: trn1, trn2"


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
