"""The one style of table."""

from __future__ import annotations

from rich import box
from rich.table import Table


def plain_table(title: str | None = None) -> Table:
    """A table with a rule below its headings and nothing else, so that 80 columns hold much."""
    return Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
