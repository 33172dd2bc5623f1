"""The page of chips: every value with its source, from the chip files."""

from __future__ import annotations

from generators.markdown import code, table
from triptych.chips import DEFAULT_BY_MACHINE, Chip, Fact, load, names

_HEAD = """\
# Chips

A chip says whose roofline a launch is placed on. Each is one TOML file in `src/triptych/chips/data/`, with a source
beside every value; a file of your own of the same form works too: `--chip my_chip.toml`, `tt.profile(chip=…)`.
"""


def page() -> str:
    """The page's Markdown."""
    defaults = ", ".join(f"{code(name)} for the {machine} machine" for machine, name in DEFAULT_BY_MACHINE.items())
    chips = [load(name) for name in names()]
    overview = table(
        ("name", "chip", "machine", "target"),
        [(f"[{chip.name}](#{chip.name})", chip.title, chip.machine, code(chip.target)) for chip in chips],
    )
    return f"{_HEAD}\nThe defaults: {defaults}.\n\n{overview}{''.join(map(_section, chips)).rstrip()}\n"


def _section(chip: Chip) -> str:
    notes = "".join(f"{note}\n\n" for note in chip.notes)
    rows = [(code(key), _value(fact), fact.source) for key, fact in chip.facts.items()]
    return f"## {chip.name}\n\n{chip.title}.\n\n{notes}{table(('key', 'value', 'source'), rows)}"


def _value(fact: Fact) -> str:
    value = f"{fact.value:.6g}" if isinstance(fact.value, float) else str(fact.value)
    return f"{value} {fact.unit}".rstrip()
