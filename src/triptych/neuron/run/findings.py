"""Collects findings: each check speaks once about a source line."""

from __future__ import annotations

from triptych.core.checks import CHECKS, Check
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation


class Findings:
    """Findings of the checks in force, in the order in which they were met."""

    def __init__(self, checks: frozenset[Check], already: tuple[Finding, ...] = ()) -> None:
        """Begin with those of the trace."""
        self._checks = checks
        self._found: dict[tuple[object, ...], Finding] = {
            (one.check, one.where): one for one in already if CHECKS[one.check] in checks
        }

    def wants(self, check: Check) -> bool:
        """Whether the check is in force; one that is not shall cost nothing."""
        return check in self._checks

    def add(self, check: Check, message: str, where: SourceLocation | None) -> None:
        """Keep the finding of a check in force, unless the check has spoken about the line."""
        assert check in self._checks, check.name
        self._found.setdefault((check.name, where), Finding.of(check, message, where))

    def keep(self, finding: Finding) -> None:
        """Keep a finding that is complete; several of one check about a line are all kept."""
        self._found[finding.check, finding.where, finding.message] = finding

    def all(self) -> tuple[Finding, ...]:
        """What was found."""
        return tuple(self._found.values())
