"""`triptych run`: runs an unmodified Python script and reports every launch, as a profiler would."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from triptych.cli.options import (
    CheckOption,
    ChipOption,
    CountersOption,
    HtmlOption,
    JsonOption,
    KernelOption,
    LenientOption,
    TraceOption,
)
from triptych.cli.reports import Reports
from triptych.cli.terminal import EXIT_FINDINGS, Terminal, interruptible, progress_bars

if TYPE_CHECKING:
    from triptych.cli.script import Outcome
    from triptych.execution.profile import Profile
    from triptych.report.counter_views import CounterChoice
    from triptych.report.kernel_filter import KernelFilter


def run(
    context: typer.Context,
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python script.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGS]...", help="The script's own arguments and options: all that follows."),
    ] = None,
    chip: ChipOption = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TARGET", help="The compile target (sm_80); the chip's own if not said."),
    ] = None,
    check: CheckOption = None,
    lenient: LenientOption = False,
    kernel: KernelOption = None,
    counters: CountersOption = None,
    html: HtmlOption = None,
    trace: TraceOption = None,
    json: JsonOption = None,
) -> None:
    """Run a Python script and report every kernel that it launches. Triptych's own options stand before SCRIPT.

    The script sees what `python SCRIPT ARGS` would show it. Triton and NKI run on triptych's machines. The report
    follows the script's output; with `--json -` standard output holds JSON alone and the script's output goes to
    standard error.

    The exit status is the script's own where that is not 0; else 1 where a check found something, else 0. Ctrl-C ends
    the script with 130, and the launches that had ended by then are reported.
    """
    from triptych.cli.activation import languages
    from triptych.cli.script import run_script, told_of_exits
    from triptych.core.settings import scope, settings
    from triptych.execution.profile import profile

    reports, shown = Reports.to(json, html, trace), _Shown.of(kernel, counters)
    _notice_own_options(context, arguments or [])
    process = os.getpid()
    with profile(chip, target, check, all_threads=True) as recorded:
        finish = partial(_finish, recorded, script, arguments or [], reports, shown)
        reports.reserve_stdout()
        strictness = scope(nki_lenient=lenient or settings().nki_lenient)
        with languages(), strictness, interruptible(), progress_bars(), told_of_exits(finish):
            outcome = run_script(script, arguments or [])
    if os.getpid() != process:  # a child that the script forked: the report is its parent's
        raise typer.Exit(outcome.status)
    with interruptible():
        status = finish(outcome)
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What of the launches is shown: `--kernel` and `--counters`."""

    kernels: KernelFilter
    counters: CounterChoice | None

    @classmethod
    def of(cls, kernels: list[str] | None, counters: str | None) -> _Shown:
        """From the options' values.

        Raises:
            UsageError: for a pattern that is none, or that no counter has.
        """
        from triptych.report.counter_views import CounterChoice
        from triptych.report.kernel_filter import KernelFilter

        return cls(KernelFilter.of(kernels or ()), None if counters is None else CounterChoice.of(counters))


def _notice_own_options(context: typer.Context, arguments: list[str]) -> None:
    """Options of ours behind the script are the script's; a reader of its silence is told so."""
    own = {name for parameter in context.command.params for name in parameter.opts if name.startswith("--")}
    for name in dict.fromkeys(argument.partition("=")[0] for argument in arguments):
        if name in own:
            Terminal().complain(f"notice: {name} stands behind SCRIPT, so the script gets it; ours stand before SCRIPT")


def _finish(
    recorded: Profile, script: str, arguments: list[str], reports: Reports, shown: _Shown, outcome: Outcome
) -> int:
    """Reports the run; the command's exit status."""
    from triptych.report import is_clean
    from triptych.report.terminal import report

    status, error = outcome.status, outcome.error
    launches, hidden = shown.kernels.split(recorded.launches)
    reports.write(
        launches, script=script, arguments=arguments, exit_status=status, error=error, tunings=recorded.tunings
    )
    if not reports.takes_stdout:
        terminal = Terminal()
        told = report(
            launches,
            terminal.width,
            failed=error is not None,
            asked=recorded.checks or (),
            counters=shown.counters,
            hidden=hidden,
            tunings=recorded.tunings,
        )
        terminal.show(told)
    return status or (0 if is_clean(recorded.launches) else EXIT_FINDINGS)
