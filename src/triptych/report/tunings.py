"""What autotuners chose from: a table for each choice, and the same as JSON has it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from triptych.execution.tuning import Tuning
from triptych.report.facts import place_json
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


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """One choice, of the form `tuning` in the schema; a configuration that does not fit the chip has no estimate."""
    return {
        "kernel": tuning.kernel,
        "chip": tuning.chip,
        "problem": tuning.problem,
        "chosen": tuning.chosen,
        "configurations": [
            {"label": label, "estimate_s": seconds if math.isfinite(seconds) else None}
            for label, seconds in tuning.seconds.items()
        ],
        "call_site": place_json(tuning.call_site),
    }
