"""Counters: numbers that know their unit and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triptych.core.counter_table import COUNTED, COUNTER_ROW, NSIGHT_ALIASES, Provenance
from triptych.core.errors import UnknownCounter

__all__ = ["Counter", "Counters", "Provenance", "counters_of", "known_counters"]


@dataclass(frozen=True, slots=True)
class Counter:
    """A value with its unit (`instructions`, `bytes`, `sectors`, `FLOPs`, `s` …) and its provenance."""

    value: int | float
    unit: str
    provenance: Provenance


class Counters(Mapping[str, Counter]):
    """Counters by name; Nsight Compute's names are understood as aliases. Immutable."""

    __slots__ = ("_by_name",)

    def __init__(self, by_name: Mapping[str, Counter]) -> None:
        """A copy of `by_name`."""
        self._by_name = dict(by_name)

    def __getitem__(self, name: str) -> Counter:
        """The counter; `UnknownCounter` where it was not counted, and for what no machine counts."""
        own = NSIGHT_ALIASES.get(name, name)
        counter = self._by_name.get(own)
        if counter is None:
            known_counters(own)
            raise UnknownCounter(f"'{name}' was not counted", hint=f"counters.value('{name}') is 0 then")
        return counter

    def __contains__(self, name: object) -> bool:
        """Whether the counter, by its own name or Nsight Compute's, is there."""
        return isinstance(name, str) and NSIGHT_ALIASES.get(name, name) in self._by_name

    def __iter__(self) -> Iterator[str]:
        """The counters' own names, in the order in which they were given."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """How many counters there are."""
        return len(self._by_name)

    def value(self, name: str) -> int | float:
        """The counter's value, 0 where it was not counted; `UnknownCounter` for what no machine counts."""
        own = NSIGHT_ALIASES.get(name, name)
        counter = self._by_name.get(own)
        if counter is None:
            known_counters(own)
            return 0
        return counter.value

    def __repr__(self) -> str:
        """Names, values and units."""
        inner = ", ".join(f"{name}={c.value} {c.unit}" for name, c in self._by_name.items())
        return f"Counters({inner})"


def counters_of(machine: str, values: Mapping[str, int | float]) -> Counters:
    """Values that a machine (`gpu`, `neuron`) counted, with the units and the provenance of the table's rows.

    Raises:
        UnknownCounter: for a name that the table does not have for that machine.
    """
    rows = COUNTER_ROW[machine]
    counters: dict[str, Counter] = {}
    for name, value in values.items():
        row = rows.get(name)
        if row is None:
            raise UnknownCounter.of(f"counter of the {machine} machine", name, rows)
        counters[name] = Counter(value, row.unit, row.provenance)
    return Counters(counters)


def known_counters(*names: str) -> tuple[str, ...]:
    """The names themselves, where each is a counter of some machine.

    Raises:
        UnknownCounter: for the first that is not.
    """
    for name in names:
        if name not in COUNTED:
            raise UnknownCounter.of("counter", name, (*COUNTED, *NSIGHT_ALIASES), listed="docs/reference/counters.md")
    return names
