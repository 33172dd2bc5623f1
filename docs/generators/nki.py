"""The page of NKI: the engine table, the limits of each generation, and the names of the language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType

from generators.markdown import code, first_paragraph, signature, table
from triptych.chips import targets
from triptych.languages.nki import collectives, isa, language
from triptych.languages.nki.names import missing
from triptych.neuron.isa import ROWS, Row, hardware

_HEAD = """\
# NKI

Kernels of `import nki` and of `import neuronxcc.nki` are traced into the instructions below; each is verified against
its row and the limits of the target as it is recorded, and again before it runs.

## Instructions

In the operands, `=` marks those that are written, `±` those that are read and written, `?` those that may be missing,
and `#` those for which a number may stand; behind them stand the memories (`ENGINE`: the engine's own registers), the
dtypes and the elements of a partition that the instruction wants. "Since" is the first NeuronCore that has it. N is the
free size, M the columns of the stationary operand, P the partitions. The costs are the published formulas of
NeuronCore-v2; those of [the timeline](timeline.md) have the modes of each generation.

"""


def page() -> str:
    """The page's Markdown."""
    rows = [_cells(row) for row in ROWS.values()]
    headings = ("instruction", "engines", "since", "operands", "attributes and defaults", "cost in cycles", "source")
    return "".join([_HEAD, table(headings, rows), *_limits(), *_names()]).rstrip() + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    engines = ", ".join(engine.value for engine in row.engines)
    operands: list[str] = []
    for rule in row.operands:
        mark = "" if not rule.written else "±" if rule.read else "="
        spaces = "/".join(sorted(space.value.upper() for space in rule.spaces))
        limits = ([" ".join(rule.dtypes)] if rule.dtypes else []) + ([_range(*rule.free)] if rule.free else [])
        name = code(f"{mark}{rule.name}{'?' * rule.optional}{'#' * rule.immediate}")
        operands.append(f"{name} {spaces}".rstrip() + (f" ({'; '.join(limits)})" if limits else ""))
    attributes = ", ".join(code(f"{name}={value!r}") for name, value in row.attributes.items())
    since = f"v{row.core_generation}"
    return code(row.name), engines, since, ", ".join(operands), attributes, row.cost.value, row.source


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _limits() -> Iterator[str]:
    yield "## Limits\n\n"
    rows: list[tuple[str, ...]] = []
    limits = [hardware(target) for target in targets("neuron")]
    for field in fields(limits[0]):
        rows.append((code(field.name), *(_value(getattr(one, field.name)) for one in limits)))
    yield table(("limit", *(one.target for one in limits)), rows)
    yield "A target may also be named by any other name of its chip, such as its generation (`gen3`).\n\n"


def _value(value: object) -> str:
    return ", ".join(f"{key}: {one}" for key, one in value.items()) if isinstance(value, dict) else str(value)  # pyright: ignore[reportUnknownVariableType]


def _names() -> Iterator[str]:
    for title, module in (("nki.isa", isa), ("nki.language", language), ("nki.collectives", collectives)):
        yield f"## {title}\n\n{table(('name', 'meaning'), _functions(module))}"
        absent = ", ".join(code(name) for name in missing(title, vars(module)))
        yield f"Names of `{title}` that are not implemented: {absent or 'none'}.\n\n"


def _functions(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name in sorted(module.__all__):
        thing = getattr(module, name)
        if callable(thing) and not isinstance(thing, type):
            yield code(f"{name}{signature(thing, types=False)}"), first_paragraph(thing)
