"""`triptych memory-wall`: experiments whose counts are compared with the formulas of text-books."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from triptych.cli.files import JsonTarget
from triptych.cli.options import JsonOption
from triptych.cli.terminal import EXIT_FINDINGS, Terminal, interruptible

if TYPE_CHECKING:
    from triptych.report.experiments import Measured


def memory_wall(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One experiment (fusion, coalescing …); all without.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: seconds in place of minutes.")] = False,
    json: JsonOption = None,
) -> None:
    """Measure the memory wall: traffic, intensity, coalescing, conflicts, divergence and overlap against formulas.

    Each experiment prints what it measured beside what its formula says; exit status 1 where one is farther off than
    it says that it may be. docs/memory-wall.md shows the figures.
    """
    from triptych.memory_wall import EXPERIMENTS, experiment
    from triptych.report import MEMORY_WALL_SCHEMA
    from triptych.report.experiments import measured_json, measured_text

    target = None if json is None else JsonTarget(json)
    chosen = list(EXPERIMENTS.values()) if name is None else [experiment(name)]
    results: list[Measured] = []
    for one in chosen:
        with interruptible():
            results.append((one, list(one.run(quick))))
        if target is None or not target.is_stdout:
            Terminal().show(measured_text(results[-1]))
    if target is not None:
        rows = [measured_json(one) for one in results]
        target.write({"schema": MEMORY_WALL_SCHEMA, "quick": quick, "experiments": rows})
    if any(one.disagreements(points) for one, points in results):
        raise typer.Exit(EXIT_FINDINGS)
