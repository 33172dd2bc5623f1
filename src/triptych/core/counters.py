"""Counters: numbers that know their unit and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from triptych.core.errors import UnknownName


class Provenance(Enum):
    """Where a number comes from. A modelled number never carries a measured counter's name."""

    COUNTED_PTX = "counted on PTX"
    COUNTED_NKI = "counted on NKI"
    MEASURED = "measured"
    MODELLED = "modelled"


@dataclass(frozen=True, slots=True)
class Counter:
    """A value with its unit (`instructions`, `bytes`, `sectors`, `FLOPs`, `s` …) and its provenance."""

    value: int | float
    unit: str
    provenance: Provenance


# Nsight Compute's names, accepted for counts that depend on addresses and masks alone.
NSIGHT_ALIASES: Mapping[str, str] = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global.load.requests",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global.store.requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global.load.sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global.store.sectors",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "shared.load.wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "shared.store.wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": "shared.load.bank_conflicts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": "shared.store.bank_conflicts",
}


class Counters(Mapping[str, Counter]):
    """Counters by name; Nsight Compute's names are understood as aliases. Immutable."""

    __slots__ = ("_by_name",)

    def __init__(self, by_name: Mapping[str, Counter]) -> None:
        """A copy of `by_name`."""
        self._by_name = dict(by_name)

    def __getitem__(self, name: str) -> Counter:
        """The counter, or `UnknownName` (a `KeyError` would not say which names there are)."""
        counter = self._by_name.get(NSIGHT_ALIASES.get(name, name))
        if counter is None:
            raise UnknownName.of("counter", name, self._by_name)
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
        """The counter's value, 0 where nothing of that name was counted."""
        counter = self._by_name.get(NSIGHT_ALIASES.get(name, name))
        return 0 if counter is None else counter.value

    def __repr__(self) -> str:
        """Names, values and units."""
        inner = ", ".join(f"{name}={c.value} {c.unit}" for name, c in self._by_name.items())
        return f"Counters({inner})"
