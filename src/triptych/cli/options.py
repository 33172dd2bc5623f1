"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from triptych.core.checks import CHECKS, MACHINES, When

ChipOption = Annotated[
    str | None,
    typer.Option("--chip", metavar="CHIP", help="Whose roofline: a chip's name or the path of a TOML file."),
]
JsonOption = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write JSON to FILE, or - for standard output.")
]
HtmlOption = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write the report to FILE, an HTML page that needs nothing else."),
]
LenientOption = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Accept of NKI kernels what AWS's simulator accepts and its compiler refuses: findings, not errors.",
    ),
]
TraceOption = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Write the launches to FILE, a trace for Perfetto or chrome://tracing; its times are modelled.",
    ),
]


def _checks_help() -> str:
    """What `--check` takes, from the table, machine by machine."""
    told = ["Checks by name, separated by commas, in place of those that are on by default."]
    for machine, title in MACHINES.items():
        lists: list[str] = []
        for when in When:
            names = [name for name, row in CHECKS.items() if row.when.get(machine) is when]
            lists += [f"{when.value}: {', '.join(names)}"] if names else []
        told.append(f"On {title} {'; '.join(lists)}.")
    return " ".join(told)


KernelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="PATTERN",
        help="Report the launches of kernels of this name alone, and those with findings: a name, a pattern as a shell"
        " has it, or regex:EXPRESSION. May be given several times. All kernels run and are checked.",
    ),
]
CountersOption = Annotated[
    str | None,
    typer.Option(
        "--counters",
        metavar="NAMES",
        help="List counters of each launch, with unit and provenance: names or patterns separated by commas, or all.",
    ),
]
CheckOption = Annotated[str | None, typer.Option("--check", metavar="NAMES", help=_checks_help())]
