"""The one style of table."""

from __future__ import annotations

from rich import box
from rich.table import Table


def plain_table() -> Table:
    """A table with a rule below its headings and nothing else, so that 80 columns hold much."""
    return Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )
