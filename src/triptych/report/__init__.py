"""Reports: what was counted and modelled, for a person (terminal) and for a program (JSON). Nothing here prints."""

from triptych.report.findings import is_clean
from triptych.report.json_report import (
    CHIPS_SCHEMA,
    INSTRUCTIONS_SCHEMA,
    MEMORY_WALL_SCHEMA,
    OPERATORS_SCHEMA,
    SCHEMA,
    document,
    dumps,
    launch_json,
    schema,
)

__all__ = [
    "CHIPS_SCHEMA",
    "INSTRUCTIONS_SCHEMA",
    "MEMORY_WALL_SCHEMA",
    "OPERATORS_SCHEMA",
    "SCHEMA",
    "document",
    "dumps",
    "is_clean",
    "launch_json",
    "schema",
]
