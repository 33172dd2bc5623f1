"""The page: values into the template, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from triptych.core.counter_table import PROVENANCES, Provenance
from triptych.core.errors import TriptychError
from triptych.core.languages import LANGUAGES
from triptych.execution.launch_report import LaunchReport
from triptych.model.traffic import LEVELS
from triptych.report.columns import origins
from triptych.report.findings import NO_KERNEL, NO_KERNEL_BEFORE_THE_ERROR, checks_that_looked, line_text
from triptych.report.groups import Group, groups_of
from triptych.report.hot_lines import ORDER
from triptych.report.html.text import finish
from triptych.report.html.views import chip_views, launch_view


@dataclass(frozen=True, slots=True)
class _Ending:
    """The exception that ended the script."""

    kind: str
    message: str
    where: str
    hint: str


def page(
    launches: Iterable[LaunchReport],
    *,
    script: str,
    arguments: Sequence[str],
    exit_status: int,
    error: BaseException | None = None,
) -> str:
    """The whole run as one HTML page; the same run gives the same text.

    `error` is the exception that ended the script, where one did. Launches that are the same in everything reported
    share a row and a section. Names, paths, source lines and messages are escaped, and the page forbids itself
    scripts and anything from outside.
    """
    groups = groups_of(launches)
    machines = tuple(dict.fromkeys(group.launch.record.machine for group in groups))
    return _environment().get_template("page.html.jinja").render(
        script=script,
        arguments=arguments,
        exit_status=exit_status,
        ending=None if error is None else _ending(error),
        nothing=NO_KERNEL if error is None else NO_KERNEL_BEFORE_THE_ERROR,
        legend=_legend(groups),
        origins=origins(machines) if machines else "",
        compulsory=[level.short for machine in machines for level in LEVELS[machine] if level.compulsory],
        languages=LANGUAGES,
        chips=chip_views(groups),
        launches=[launch_view(group) for group in groups],
        launch_count=sum(len(group.numbers) for group in groups),
        checks=checks_that_looked([group.launch for group in groups]),
        line_order=ORDER,
    )  # fmt: skip


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("triptych.report.html"),
        autoescape=True,
        finalize=finish,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _ending(error: BaseException) -> _Ending:
    if isinstance(error, TriptychError):
        where = "" if error.where is None else f"{error.where}  {line_text(error.message, error.where)}".rstrip()
        return _Ending(type(error).__name__, error.message, where, error.hint or "")
    return _Ending(type(error).__name__, str(error), "", "")


def _legend(groups: Iterable[Group]) -> list[tuple[str, str]]:
    """The provenances that occur, with what they mean, in the order of their definition."""
    counters = (counter for group in groups for counter in group.launch.counters.values())
    seen = {counter.provenance for counter in counters} | {Provenance.MODELLED}
    return [(one.value, PROVENANCES[one]) for one in Provenance if one in seen]
