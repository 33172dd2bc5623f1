"""What a report is made of: executed launches with the chips that they are placed on."""

from __future__ import annotations

from collections.abc import Iterable

from triptych.core.checks import Severity
from triptych.execution.launch_report import LaunchReport

Launch = LaunchReport
"""A launch's record, its chip, and its place on the chip's roofline."""


def is_clean(launches: Iterable[Launch]) -> bool:
    """Whether no launch has a finding worse than a notice."""
    return all(finding.severity is Severity.NOTICE for launch in launches for finding in launch.findings)
