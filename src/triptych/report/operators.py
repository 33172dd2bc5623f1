"""Operators to text and JSON: what a kernel must compute, how exactly, and with how little work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triptych.chips import Chip
from triptych.core.dtypes import DType
from triptych.operators import Operator, Parameter, Size
from triptych.operators.floor import floor
from triptych.operators.power import Proof, right, wrong
from triptych.report.quantities import count, duration, ratio
from triptych.report.quantities import size as bytes_of
from triptych.report.tables import plain_table

Proofs: TypeAlias = Mapping[str, tuple[Proof, list[Proof]]]
"""By T: of right results, and of wrong ones."""


def intensity(operator: Operator, size: Size, dtype: DType) -> float:
    """FLOPs for each byte, of the least of both."""
    return operator.least_flops(size.values) / operator.least_bytes(size.values, dtype)


def listing(operators: Iterable[Operator]) -> RenderableType:
    """A line for each operator."""
    table = plain_table()
    table.add_column("operator", no_wrap=True)
    table.add_column("computes", overflow="fold")
    table.add_column("T", overflow="fold")
    table.add_column("FLOP/byte", justify="right", no_wrap=True)
    for one in operators:
        ratios = sorted(intensity(one, size, one.dtype(one.dtypes[0])) for size in one.sizes[1:])
        table.add_row(Text(one.name), Text(one.computes), Text(" ".join(one.dtypes)), _range(ratios))
    note = "FLOP/byte of the least FLOPs and bytes of the operator's real sizes, in the first type T."
    return Group(table, Text(note, "dim"))


def description(operator: Operator, chip: Chip, proofs: Proofs) -> RenderableType:
    """All of an operator, with its floors on a chip."""
    sections: list[RenderableType] = [Text(f"{operator.name}  {operator.family}", "bold"), Text(operator.computes)]
    for title, content in (
        ("arguments, in order", _arguments(operator)),
        ("sizes, with their least work", _sizes(operator, chip)),
        ("distributions of inputs", _pairs((one.name, one.meaning) for one in operator.distributions)),
        ("error budget", Text(operator.derivation)),
        ("power of the budget: errors, as multiples of what is allowed, where they tell", _power(proofs)),
    ):
        sections += [Text(), Text(title, "bold"), content]
    return Group(*sections)


def prove(operator: Operator) -> Proofs:
    """The power of the operator's budget, by T, at its first size."""
    return {name: (right(operator, name), wrong(operator, name)) for name in operator.dtypes}


def operator_json(operator: Operator, chip: Chip, proofs: Proofs) -> dict[str, Any]:
    """One operator, of the form `operator` in the schema; without proofs, `power` is empty."""
    return {
        "name": operator.name,
        "computes": operator.computes,
        "family": operator.family,
        "dtypes": list(operator.dtypes),
        "constants": dict(operator.constants),
        "inputs": [_parameter_json(one) for one in operator.inputs],
        "outputs": [_parameter_json(one) for one in operator.outputs],
        "least": {
            "flops": operator.flops.text,
            "matrix_flops": operator.matrix_flops.text,
            "bytes": operator.bytes_formula(),
        },
        "sizes": [_size_json(operator, size, chip) for size in operator.sizes],
        "distributions": [{"name": one.name, "meaning": one.meaning} for one in operator.distributions],
        "budget": operator.derivation,
        "wrong": [one.name for one in operator.wrong],
        "power": {
            name: {"right": _proof_json(passed), "wrong": [_proof_json(one) for one in failed]}
            for name, (passed, failed) in proofs.items()
        },
    }


def _parameter_json(one: Parameter) -> dict[str, Any]:
    return {"name": one.name, "axes": one.axes.split(), "dtype": one.dtype, "meaning": one.meaning}


def _size_json(operator: Operator, size: Size, chip: Chip) -> dict[str, Any]:
    floors = {name: floor(operator, size.values, operator.dtype(name), chip) for name in operator.dtypes}
    return {
        "name": size.name,
        "values": dict(size.values),
        "source": size.source,
        "flops": operator.flops(size.values),
        "matrix_flops": operator.matrix_flops(size.values),
        "bytes": {name: operator.least_bytes(size.values, operator.dtype(name)) for name in operator.dtypes},
        "floor_s": {name: one.seconds for name, one in floors.items()},
        "bound": {name: one.bound for name, one in floors.items()},
    }


def _proof_json(one: Proof) -> dict[str, Any]:
    error = one.error if math.isfinite(one.error) else None
    return {"variant": one.variant, "distribution": one.distribution, "error": error}


def _arguments(operator: Operator) -> RenderableType:
    table = plain_table()
    for heading in ("", "name", "type", "axes"):
        table.add_column(heading, no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for kind, parameters in (("in", operator.inputs), ("out", operator.outputs)):
        for one in parameters:
            table.add_row(kind, *map(Text, (one.name, one.dtype, _axes(one), one.meaning)))
    kinds = [Text(f"T is {' or '.join(operator.dtypes)}.", "dim")]
    kinds += [Text(f"{name} = {value:g}", "dim") for name, value in operator.constants.items()]
    return Group(table, *kinds)


def _axes(one: Parameter) -> str:
    return f"({', '.join(one.axes.split())})"


def _sizes(operator: Operator, chip: Chip) -> RenderableType:
    table = plain_table()
    table.add_column("size", no_wrap=True)
    table.add_column("values", overflow="fold")
    for heading in ("FLOPs", "bytes", "FLOP/byte", *(f"floor\n{name}" for name in operator.dtypes)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    first = operator.dtype(operator.dtypes[0])
    for size in operator.sizes:
        values = " ".join(f"{name}={value}" for name, value in size.values.items())
        flops, moved = operator.least_flops(size.values), operator.least_bytes(size.values, first)
        kinds = map(operator.dtype, operator.dtypes)
        floors = [duration(floor(operator, size.values, kind, chip).seconds) for kind in kinds]
        figures = count(flops), bytes_of(moved), ratio(intensity(operator, size, first)), *floors
        table.add_row(Text(size.name), Text(values), *figures, Text(size.source))
    notes = [
        *formulas(operator),
        f"Bytes are those of {first}; a floor is the least time on {chip.name}, at its peaks.",
    ]
    return Group(table, *(Text(line, "dim") for line in notes))


def formulas(operator: Operator) -> Sequence[str]:
    """The least work, a line each."""
    parts = [("FLOPs", operator.flops), ("FLOPs of matrix units", operator.matrix_flops)]
    lines = [f"{name} = {formula}" for name, formula in parts if formula.text != "0"]
    return [*lines, f"bytes = {operator.bytes_formula()}"]


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    table = plain_table()
    table.show_header = False
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, meaning in rows:
        table.add_row(Text(name), Text(meaning))
    return table


def _power(proofs: Proofs) -> RenderableType:
    """Variants down, types along: each cell the error, and the distribution that shows it."""
    table = plain_table()
    table.add_column("results", overflow="fold")
    for name in proofs:
        table.add_column(name, justify="right")
    by_variant: dict[str, dict[str, Proof]] = {"right, in f32": {name: ok for name, (ok, _) in proofs.items()}}
    for name, (_, failed) in proofs.items():
        for one in failed:
            by_variant.setdefault(one.variant, {})[name] = one
    for variant, found in by_variant.items():
        cells = [_told(found[name]) if name in found else "" for name in proofs]
        table.add_row(Text(variant), *map(Text, cells))
    return table


def _told(proof: Proof) -> str:
    plain = proof.error < 1000 or math.isinf(proof.error)
    return f"{ratio(proof.error) if plain else f'{proof.error:.0e}'} {proof.distribution}"


def _range(values: Sequence[float]) -> str:
    low, high = ratio(values[0]), ratio(values[-1])
    return low if low == high else f"{low} … {high}"
