"""`triptych chips`: which chips there are, and every value of one with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from triptych.cli.files import JsonTarget
from triptych.cli.options import JsonOption
from triptych.cli.terminal import Terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from triptych.chips import Chip


def chips(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A chip's name or the path of a TOML file: all its values.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """List the chips, or every value of one with its source."""
    from triptych.chips import load, names
    from triptych.report import CHIPS_SCHEMA

    target = None if json is None else JsonTarget(json)
    found = [load(name)] if name is not None else [load(each) for each in names()]
    if target is not None:
        target.write({"schema": CHIPS_SCHEMA, "chips": [_json(chip) for chip in found]})
    if target is None or not target.is_stdout:
        Terminal().show(_one(found[0]) if name is not None else _all(found))


def _json(chip: Chip) -> dict[str, Any]:
    values = {key: {"value": fact.value, "unit": fact.unit, "source": fact.source} for key, fact in chip.facts.items()}
    return {
        "name": chip.name,
        "title": chip.title,
        "described": chip.described,
        "machine": chip.machine,
        "notes": list(chip.notes),
        "values": values,
    }


def _all(found: list[Chip]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from triptych.report.quantities import rate
    from triptych.report.tables import plain_table

    table = plain_table()
    for heading in ("name", "chip", "target"):
        table.add_column(heading)
    for heading in ("memory", "f32", "dense\nf16", "ridge"):
        table.add_column(heading, justify="right", no_wrap=True)
    for chip in found:
        plain = chip.flops_per_s.get("f32", chip.flops_per_s.get("tensor.f32", 0.0))
        dense = chip.flops_per_s["tensor.f16"]
        bandwidth = chip.memory_bytes_per_s
        table.add_row(
            *(chip.name, chip.described, chip.target, rate(bandwidth, "B/s"), rate(plain, ""), rate(dense, "")),
            f"{dense / bandwidth:.0f}",
        )
    return Group(table, Text("f32 and dense f16 in FLOP/s; ridge in FLOP/byte, that of dense f16", "dim"))


def _one(chip: Chip) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from triptych.report.tables import plain_table

    table = plain_table()
    table.add_column("key", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for key, fact in chip.facts.items():
        if isinstance(fact.value, str) and " " in fact.value:  # a sentence: it stands below
            continue
        value = f"{fact.value:.6g}" if isinstance(fact.value, float) else str(fact.value)
        table.add_row(key, f"{value} {fact.unit}".rstrip(), Text(fact.source))
    notes = [Text(note) for note in chip.notes]
    return Group(Text(f"{chip.name}  {chip.described}", "bold"), Text(), table, *([Text(), *notes] if notes else []))
