"""A fact: a value, its unit and who says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a chip file. `unit` is empty for words."""

    value: int | float | str
    unit: str
    source: str
