"""The README's table of what is counted and what is modelled, from the counter table and the report's columns."""

from __future__ import annotations

from pathlib import Path

from generators.markdown import code, table
from triptych.core.counter_table import COUNTER_ROWS, PROVENANCES, Provenance
from triptych.report.columns import COLUMNS, Origin, in_one_line

_README = Path(__file__).resolve().parents[2] / "README.md"
_BEGIN = "<!-- figures: written by docs/generate.py -->\n"
_END = "<!-- end of figures -->\n"


def readme() -> str:
    """The README with its table as it should be.

    Raises:
        ValueError: where it has no place for one.
    """
    head, begin, rest = _README.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{_README.name} lacks the lines around its table of figures")
    return f"{head}{begin}{_figures().strip()}\n{end}{tail}"


def _figures() -> str:
    rows = [(PROVENANCES[one], ", ".join(_names(one))) for one in Provenance if _names(one)]
    return table(("how", "figures"), rows)


def _names(provenance: Provenance) -> list[str]:
    """The counters of that provenance; of what is modelled also the columns of the tables of launches."""
    rows = [row for row in COUNTER_ROWS if row.provenance is provenance]
    patterns = dict.fromkeys(f"model.{row.pattern}" if row.machine == "model" else row.pattern for row in rows)
    names = [code(pattern) for pattern in patterns]
    if provenance is Provenance.MODELLED:
        columns = (column for each in COLUMNS.values() for column in each if column.origin is Origin.MODELLED)
        names += dict.fromkeys(f"column {in_one_line(column.heading)}" for column in columns)
    return names
