"""The files that a run is reported in: JSON, an HTML page, a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from triptych.cli.files import FileTarget, JsonTarget
from triptych.core.errors import UsageError

if TYPE_CHECKING:
    from triptych.execution.launch_report import LaunchReport
    from triptych.execution.tuning import Tuning


@dataclass(frozen=True, slots=True)
class Reports:
    """Where `--json`, `--html` and `--trace` go, None for what was not asked for."""

    json: JsonTarget | None
    html: FileTarget | None
    trace: FileTarget | None

    @classmethod
    def to(cls, json: str | None, html: str | None, trace: str | None) -> Reports:
        """From the options' values.

        Raises:
            UsageError: where a file cannot be written, where two are the same, or where HTML or a trace would go to
                standard output, which is the script's.
        """
        for option, target in (("--html", html), ("--trace", trace)):
            if target == "-":
                raise UsageError(
                    f"{option} takes a file, not -", hint="standard output is the script's; --json alone can take it"
                )
        reports = cls(
            None if json is None else JsonTarget(json),
            None if html is None else FileTarget("--html", "HTML", html),
            None if trace is None else FileTarget("--trace", "a trace", trace),
        )
        reports._refuse_one_file_for_two()
        return reports

    def _refuse_one_file_for_two(self) -> None:
        files = [one for one in (self.json and self.json.file, self.html, self.trace) if one is not None]
        for one, other in combinations(files, 2):
            if one.path.resolve() == other.path.resolve():
                raise UsageError(f"{one.option} and {other.option} name the same file", hint="give each its own")

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output holds JSON alone."""
        return self.json is not None and self.json.is_stdout

    def reserve_stdout(self) -> None:
        """From now on standard output is JSON's alone, where that was asked for."""
        if self.json is not None and self.json.is_stdout:
            self.json.reserve_stdout()

    def write(
        self,
        launches: Sequence[LaunchReport],
        *,
        script: str,
        arguments: Sequence[str],
        exit_status: int,
        error: BaseException | None = None,
        tunings: Sequence[Tuning] = (),
    ) -> None:
        """Writes what was asked for; `tunings` are in the JSON.

        Raises:
            UsageError: where a file can no longer be written.
        """
        from triptych.report import document

        if self.json is not None:
            told = document(
                launches, script=script, arguments=arguments, exit_status=exit_status, error=error, tunings=tunings
            )
            self.json.write(told)
        if self.html is not None:
            from triptych.report.html import page

            text = page(launches, script=script, arguments=arguments, exit_status=exit_status, error=error)
            self.html.write_text(text)
        if self.trace is not None:
            from triptych.report.trace import dumps, trace

            self.trace.write_text(dumps(trace(launches, script=script)))
