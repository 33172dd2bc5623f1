"""`triptych instructions`: the PTX instructions that the GPU machine runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from triptych.cli.files import JsonTarget
from triptych.cli.options import JsonOption
from triptych.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from triptych.gpu.isa import Row


def instructions(
    mnemonic: Annotated[
        str | None, typer.Argument(metavar="[MNEMONIC]", help="Only the forms of one instruction (add, ld …).")
    ] = None,
    json: JsonOption = None,
) -> None:
    """List the PTX instruction forms that the GPU machine runs, with their types and sections of the manual."""
    from triptych.core.errors import UnknownName
    from triptych.gpu.isa import TABLE
    from triptych.report import INSTRUCTIONS_SCHEMA

    target = None if json is None else JsonTarget(json)
    rows = [row for row in TABLE if mnemonic in (None, row.mnemonic)]
    if not rows:
        raise UnknownName.of(
            "instruction", str(mnemonic), {row.mnemonic for row in TABLE}, listed="triptych instructions"
        )
    if target is not None:
        target.write({"schema": INSTRUCTIONS_SCHEMA, "instructions": [_json(row) for row in rows]})
    if target is None or not target.is_stdout:
        Terminal().show(_table(rows))


def _json(row: Row) -> dict[str, Any]:
    return {
        "syntax": row.syntax,
        "types": row.types,
        "section": row.section,
        "cost": row.pipe.value,
        "summary": row.summary,
    }


def _table(rows: Sequence[Row]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from triptych.report.tables import plain_table

    table = plain_table()
    for heading in ("syntax", "types", "section", "cost", "meaning"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, (row.syntax, row.types, row.section, row.pipe.value, row.summary)))
    return Group(table, Text(f"{len(rows)} forms; sections are those of NVIDIA's PTX ISA manual."))
