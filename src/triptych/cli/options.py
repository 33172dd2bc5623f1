"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

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
TraceOption = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Write the launches to FILE, a trace for Perfetto or chrome://tracing; its times are modelled.",
    ),
]
