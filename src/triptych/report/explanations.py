"""What a code means, in a few sentences: a verdict's reason or a check."""

from __future__ import annotations

from triptych.core.checks import CHECKS, MACHINES, Check
from triptych.core.errors import UnknownName
from triptych.judge import REASONS, ReasonRow


def explanation(code: str) -> str:
    """The text on a code, a few lines.

    Raises:
        UnknownName: where neither a reason nor a check is called so.
    """
    if code in REASONS:
        return _of_reason(REASONS[code])
    if code in CHECKS:
        return _of_check(CHECKS[code])
    raise UnknownName.of("code", code, (*REASONS, *CHECKS), listed="docs/judge.md, docs/reference/checks.md")


def _of_reason(row: ReasonRow) -> str:
    return f"{row.code}: a reason for the verdict '{row.outcome.value}'\n  {row.meaning}\n  What to do: {row.advice}"


def _of_check(check: Check) -> str:
    looks = ", ".join(f"{MACHINES[machine]}: {when.value}" for machine, when in check.when.items())
    return f"{check.name}: a check whose findings are {check.severity.value}s ({looks})\n  {check.sees}"
