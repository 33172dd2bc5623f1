"""What a run's findings come to."""

from __future__ import annotations

from collections.abc import Iterable

from triptych.core.checks import Severity
from triptych.execution.launch_report import LaunchReport


def is_clean(launches: Iterable[LaunchReport]) -> bool:
    """Whether no launch has a finding worse than a notice."""
    return all(finding.severity is Severity.NOTICE for launch in launches for finding in launch.findings)
