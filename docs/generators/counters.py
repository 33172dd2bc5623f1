"""The page of counters: the counter table, machine by machine."""

from __future__ import annotations

from collections.abc import Sequence

from generators.markdown import code, table
from triptych.core.counter_table import ALWAYS, COUNTER_ROWS, NSIGHT_ALIASES, PROVENANCES, CounterRow
from triptych.model.traffic import LEVELS

_HEAD = """\
# Counters

`launch.counters[name]` is a number that knows its unit and its provenance; `launch.counters.value(name)` is the bare
number, 0 where nothing was counted. A name that no machine counts is an error. Counters that are 0 are left out of a
launch, but for those that are named as always there, and for bank conflicts where there were wavefronts. Counts do not
depend on the number of workers, and they are the same in every run.

"""

_TITLES = {"gpu": "The GPU machine", "neuron": "The NeuronCore machine", "model": "The model"}


def names_of(row: CounterRow) -> Sequence[str]:
    """The names of a row's family; those of levels of memory are the model's own."""
    if "<level>" not in row.pattern:
        return row.names
    return [row.named(level.label) for levels in LEVELS.values() for level in levels]


def page() -> str:
    """The page's Markdown."""
    provenance = table(("provenance", "meaning"), [(code(kind.value), text) for kind, text in PROVENANCES.items()])
    parts = [_HEAD, provenance]
    for machine, title in _TITLES.items():
        rows = [row for row in COUNTER_ROWS if row.machine == machine]
        cells = [(" ".join(map(code, names_of(row))), row.unit, row.meaning) for row in rows]
        parts.append(f"## {title}\n\n{table(('counters', 'unit', 'meaning'), cells)}")
        if ALWAYS[machine]:
            parts.append(f"Always there: {' '.join(map(code, ALWAYS[machine]))}\n\n")
    parts.append("## Nsight Compute's names\n\n")
    parts.append("Accepted for counts that depend on addresses and masks alone.\n\n")
    parts.append(table(("Nsight Compute", "here"), [(code(a), code(b)) for a, b in NSIGHT_ALIASES.items()]))
    return "".join(parts).rstrip() + "\n"
