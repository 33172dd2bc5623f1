"""`triptych operators`: what kernels must compute, how exactly, and with how little work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from triptych.cli.files import JsonTarget
from triptych.cli.options import ChipOption, JsonOption
from triptych.cli.terminal import Terminal

if TYPE_CHECKING:
    from triptych.report.operators import Proofs


def operators(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One operator: all of its declaration, and its power.")
    ] = None,
    chip: ChipOption = None,
    json: JsonOption = None,
) -> None:
    """List the operators, or all of one: arguments, sizes, inputs, error budget, least work and time.

    The power of a budget is shown for one operator: wrong results that it must not let pass are computed and compared.
    """
    from triptych.chips import DEFAULT_BY_MACHINE, load
    from triptych.operators import OPERATORS, operator
    from triptych.report import OPERATORS_SCHEMA
    from triptych.report.operators import description, listing, operator_json, prove

    placed = load(chip or DEFAULT_BY_MACHINE["gpu"])
    target = None if json is None else JsonTarget(json)
    found = list(OPERATORS.values()) if name is None else [operator(name)]
    proofs: dict[str, Proofs] = {one.name: {} if name is None else prove(one) for one in found}
    if target is not None:
        rows = [operator_json(one, placed, proofs[one.name]) for one in found]
        target.write({"schema": OPERATORS_SCHEMA, "chip": placed.name, "operators": rows})
    if target is None or not target.is_stdout:
        Terminal().show(listing(found) if name is None else description(found[0], placed, proofs[found[0].name]))
