"""A launch's counters as people read them, all or those that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from triptych.core.counter_table import COUNTED, COUNTER_ROW, NSIGHT_ALIASES
from triptych.core.counters import Counter, Provenance
from triptych.core.errors import UnknownCounter, UsageError
from triptych.execution.launch_report import LaunchReport

ALL = "all"
"""Stands for the pattern of every counter."""
MODEL = "model."
"""Before the names of modelled numbers."""

_ALIASES = {name: alias for alias, name in NSIGHT_ALIASES.items()}
_MODELLED = tuple(f"{MODEL}{pattern.partition('<')[0]}{'*' * ('<' in pattern)}" for pattern in COUNTER_ROW["model"])


@dataclass(frozen=True, slots=True)
class CounterView:
    """A number with all that is known about it."""

    name: str
    value: str
    unit: str
    provenance: str
    modelled: bool


@dataclass(frozen=True, slots=True)
class CounterChoice:
    """The counters that somebody asked for, by patterns of their names as a shell has them."""

    patterns: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> CounterChoice:
        """From names and patterns, separated by commas; `all` is every counter.

        Raises:
            UsageError: where there is none.
            UnknownCounter: for a pattern that is no counter's.
        """
        patterns = tuple("*" if one == ALL else one for part in text.split(",") if (one := part.strip()))
        if not patterns:
            raise UsageError(f"'{text}' names no counter", hint=f"names, patterns such as global.*, or {ALL}")
        names = (*COUNTED, *NSIGHT_ALIASES)
        for pattern in patterns:
            of_model = any(fnmatchcase(one, pattern) or fnmatchcase(pattern, one) for one in _MODELLED)
            if not of_model and not any(fnmatchcase(name, pattern) for name in names):
                raise UnknownCounter.of("counter", pattern, (*names, *_MODELLED), listed="docs/reference/counters.md")
        return cls(patterns)

    def __contains__(self, name: str) -> bool:
        """Whether the counter, by its own name or Nsight Compute's, was asked for."""
        called = (name, _ALIASES.get(name, name))
        return any(fnmatchcase(one, pattern) for one in called for pattern in self.patterns)


EVERY_COUNTER = CounterChoice(("*",))


def counter_views(launch: LaunchReport, choice: CounterChoice = EVERY_COUNTER) -> Iterator[CounterView]:
    """The counted ones by their names, then those of the model."""
    told = dict(launch.counters)
    if not launch.stopped:
        told |= {f"{MODEL}{name}": counter for name, counter in launch.roofline.counters().items()}
    return (_view(name, counter) for name, counter in told.items() if name in choice)


def _view(name: str, counter: Counter) -> CounterView:
    """Integers exactly, other numbers to six digits."""
    value = counter.value
    text = f"{int(value):,}" if float(value).is_integer() else f"{value:.6g}"
    modelled = counter.provenance is Provenance.MODELLED
    return CounterView(name, text, counter.unit, counter.provenance.value, modelled)
