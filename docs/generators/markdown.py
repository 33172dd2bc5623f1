"""Markdown as the pages need it: tables, code, docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """Inline code; empty for nothing."""
    return f"`{text}`" if text else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with a blank line behind it."""
    lines = [_row(headings), _row(["---"] * len(headings)), *map(_row, rows)]
    return "\n".join(lines) + "\n\n"


def _row(cells: Sequence[str]) -> str:
    inner = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(inner)} |"


def documentation(thing: object) -> str:
    """The docstring without its indentation, empty where there is none of its own."""
    return inspect.getdoc(thing) or ""


def first_paragraph(thing: object) -> str:
    """The docstring up to its first blank line, as one line."""
    return " ".join(documentation(thing).partition("\n\n")[0].split())
