"""Which launches a report shows, by the names of their kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from triptych.core.errors import UsageError
from triptych.execution.launch_report import LaunchReport
from triptych.report.findings import is_clean

_REGEX = "regex:"


@dataclass(frozen=True, slots=True)
class KernelFilter:
    """Patterns of kernels' names; without any, every kernel matches."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> KernelFilter:
        """From names or patterns as a shell has them, or, behind `regex:`, regular expressions that are searched for.

        Raises:
            UsageError: for an expression that is none.
        """
        return cls(tuple(map(_compiled, texts)))

    def matches(self, kernel: str) -> bool:
        """Whether the kernel is meant, by its whole name or by that without template arguments."""
        names = (kernel, kernel.partition("<")[0])
        return not self.patterns or any(pattern.search(name) for pattern in self.patterns for name in names)

    def split(self, launches: Iterable[LaunchReport]) -> tuple[Sequence[LaunchReport], Sequence[LaunchReport]]:
        """The launches that are shown, and the others.

        Shown are those of the kernels that are meant, and those with a finding worse than a notice: nothing that
        counts in the exit status is hidden.
        """
        shown: list[LaunchReport] = []
        hidden: list[LaunchReport] = []
        for launch in launches:
            (shown if self.matches(launch.kernel) or not is_clean([launch]) else hidden).append(launch)
        return shown, hidden


def _compiled(text: str) -> re.Pattern[str]:
    if not text.startswith(_REGEX):
        return re.compile(rf"\A{translate(text)}")
    try:
        return re.compile(text.removeprefix(_REGEX))
    except re.error as error:
        raise UsageError(f"'{text}' is no regular expression: {error}") from None
