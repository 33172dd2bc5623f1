"""The table of checks and those who look: a check that can be asked for is one that somebody carries out."""

from __future__ import annotations

from triptych.core.checks import CHECKS, When
from triptych.gpu.check import FINDERS


def test_who_asks_for_a_check_gets_it() -> None:
    asked = {row for row in CHECKS.values() if row.when.get("gpu") in (When.DEFAULT, When.REQUEST)}
    assert {row for row in FINDERS if row.when["gpu"] is not When.ALWAYS} == asked


def test_finders_are_of_checks_of_the_machine() -> None:
    assert all("gpu" in row.when and CHECKS[row.name] is row for row in FINDERS)
