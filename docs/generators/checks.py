"""The page of checks, from the table."""

from __future__ import annotations

from generators.markdown import code, table
from triptych.core.checks import CHECKS, MACHINES

_HEAD = """\
# Checks

What is looked for while a kernel runs. Each finding names a row of this table, its severity, a message and, where
known, the line, the thread and its block.

`triptych run --check NAMES` and `tt.profile(check=NAMES)` take names, separated by commas: these take the place of the
checks that are on by default, for all launches of the run or the block. What is always on cannot be turned off.
`launch.checks`, and `checks` of a launch in JSON, say which looked at it. A finding that is an error or a
warning makes `triptych run` exit with 1.

"""
_FOOT = """\
Checks that are always on are faults: the launch is stopped, the fault is [an error](errors.md), and the record of the
launch has it as a finding. What AWS's compiler would refuse is no check: such a kernel does not run.
"""


def page() -> str:
    """The page's Markdown."""
    rows: list[tuple[str, ...]] = []
    for row in CHECKS.values():
        machines = (row.when[machine].value if machine in row.when else "" for machine in MACHINES)
        rows.append((code(row.name), row.severity.value, *machines, row.sees))
    headings = ("check", "severity", *(f"on {name}" for name in MACHINES.values()), "what it sees")
    return _HEAD + table(headings, rows) + _FOOT
