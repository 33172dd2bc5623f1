"""What a run's findings come to, and the words around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triptych.core.checks import CHECKS, MACHINES, Severity
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport

NO_KERNEL = "the script launched no kernel"
NO_KERNEL_BEFORE_THE_ERROR = "the script ended with an error before any kernel had run to its end"
"""What reports say where there is no launch."""


def is_clean(launches: Iterable[LaunchReport]) -> bool:
    """Whether no launch has a finding worse than a notice; one that a fault stopped has the fault as its finding.

    How the script itself ended is its exit status: a run is right where that is 0 and its launches are clean.
    """
    return all(finding.severity is Severity.NOTICE for launch in launches for finding in launch.findings)


def checks_that_looked(launches: Sequence[LaunchReport]) -> str:
    """The checks that looked at each machine's launches: `memcheck, trap (GPU); memcheck, initcheck (NeuronCore)`."""
    told: list[str] = []
    for machine, title in MACHINES.items():
        looked = {name for launch in launches if launch.record.machine == machine for name in launch.checks}
        if looked:
            told.append(f"{', '.join(name for name in CHECKS if name in looked)} ({title.removeprefix('the ')})")
    return "; ".join(told) or "none"


def line_text(message: str, where: SourceLocation | None) -> str:
    """The text of the line that a message is about; empty where there is none, or the message ends with it."""
    text = "" if where is None else where.text
    return "" if message.endswith(text) else text
