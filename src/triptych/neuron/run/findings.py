"""Collects findings: each check speaks once about a source line."""

from __future__ import annotations

from triptych.core.launches import Finding, Severity
from triptych.core.source import SourceLocation


class Findings:
    """Findings in the order in which they were met."""

    def __init__(self, already: tuple[Finding, ...] = ()) -> None:
        """Begin with those of the trace."""
        self._found = {(one.check, one.where): one for one in already}

    def add(self, check: str, severity: Severity, message: str, where: SourceLocation | None) -> None:
        """Keep the finding, unless the check has spoken about the line."""
        self._found.setdefault((check, where), Finding(check, severity, message, where))

    def all(self) -> tuple[Finding, ...]:
        """What was found."""
        return tuple(self._found.values())
