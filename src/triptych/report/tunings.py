"""What autotuners chose from: a table for each choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from triptych.execution.tuning import Tuning
from triptych.report.quantities import count, duration
from triptych.report.tables import plain_table

_SHOWN = 8
"""Configurations, the quickest first."""


def tuning_tables(tunings: Sequence[Tuning]) -> Iterable[RenderableType]:
    """Of each choice the configurations with their modelled times, the one that was chosen first."""
    for tuning in tunings:
        number = count(len(tuning.seconds))
        yield Text(f"\nautotuning of {tuning.kernel} on {tuning.chip}: {number} configurations", "bold")
        yield Text(f"for {tuning.problem}", "dim")
        table = plain_table()
        table.add_column("configuration", overflow="fold")
        table.add_column("estimate", justify="right", no_wrap=True)
        ordered = sorted(tuning.seconds.items(), key=lambda item: (item[0] != tuning.chosen, item[1]))
        for label, seconds in ordered[:_SHOWN]:
            table.add_row(Text(label), "does not fit" if math.isinf(seconds) else duration(seconds))
        yield table
        if len(ordered) > _SHOWN:
            yield Text(f"and {count(len(ordered) - _SHOWN)} more, none quicker", "dim")
    if tunings:
        yield Text("\nThe first of each is the autotuner's choice; estimates are modelled.", "dim")
