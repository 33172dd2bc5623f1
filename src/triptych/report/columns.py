"""The columns of the launch table: a row per column, which says its heading and how a launch fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from triptych.core.counters import Counters, known_counters
from triptych.execution.launch_report import LaunchReport
from triptych.model.traffic import LEVELS, Level
from triptych.report.facts import FACTS
from triptych.report.quantities import count, duration, percent, ratio, size

ABSENT = "–"
STOPPED = "stopped"
"""In the place of the first figure of a launch that a fault stopped."""


class Origin(Enum):
    """Where the figures of a column come from; a counter's own provenance says on what it was counted."""

    GIVEN = "as launched"
    COUNTED = "counted"
    MODELLED = "modelled"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading (a newline breaks it, to keep columns narrow) and what stands under it for a launch."""

    heading: str
    origin: Origin
    cell: Callable[[LaunchReport], str]
    left: bool = False
    """Words stand left, numbers right."""


def in_one_line(heading: str) -> str:
    """A heading without its breaks: `diver-\\ngent` is `divergent`, `warp\\ninstr.` is `warp instr.`."""
    return heading.replace("-\n", "").replace("\n/", "/").replace("/\n", "/").replace("\n", " ")


def total(counters: Counters, *names: str) -> float:
    """The sum of counters, those that were not counted as 0."""
    return sum(counters.value(name) for name in names)


def quotient(counters: Counters, upper: Sequence[str], lower: Sequence[str]) -> float | None:
    """One sum over another, None where the lower one is 0."""
    below = total(counters, *lower)
    return total(counters, *upper) / below if below else None


_GLOBAL = ("global.load", "global.store", "global.atomic")
_SHARED = ("shared.load", "shared.store")
SECTORS = known_counters(*(f"{kind}.sectors" for kind in _GLOBAL))
REQUESTS = known_counters(*(f"{kind}.requests" for kind in _GLOBAL))
CONFLICTS = known_counters(*(f"{kind}.bank_conflicts" for kind in _SHARED))
_DIVERGENT = known_counters("branches.divergent")
_BRANCHES = known_counters("branches")


def _counted(*names: str) -> Callable[[LaunchReport], str]:
    known_counters(*names)
    return lambda launch: count(total(launch.record.counters, *names))


def _sized(*names: str) -> Callable[[LaunchReport], str]:
    known_counters(*names)
    return lambda launch: size(total(launch.record.counters, *names))


def _sectors_per_request(launch: LaunchReport) -> str:
    value = quotient(launch.record.counters, SECTORS, REQUESTS)
    return ABSENT if value is None else ratio(value)


def _divergence(launch: LaunchReport) -> str:
    value = quotient(launch.record.counters, _DIVERGENT, _BRANCHES)
    return ABSENT if value is None else percent(value)


def _bytes_at(level: Level) -> Column:
    origin = Origin.MODELLED if level.modelled else Origin.COUNTED
    return Column(f"{level.short}\nbytes", origin, lambda launch: size(launch.roofline.at(level.key).bytes))


def _given(key: str, *, left: bool = False) -> Column:
    return Column(FACTS[key].title, Origin.GIVEN, FACTS[key].text, left)


_ROOFLINE = (
    Column("FLOP\n/byte", Origin.MODELLED, lambda launch: ratio(launch.roofline.intensity)),
    Column("ridge", Origin.MODELLED, lambda launch: ratio(launch.roofline.ridge_point)),
    Column("bound", Origin.MODELLED, lambda launch: launch.roofline.bound, left=True),
    Column("floor", Origin.MODELLED, lambda launch: duration(launch.roofline.floor_s)),
    Column("estimate", Origin.MODELLED, lambda launch: duration(launch.roofline.estimate_s)),
    Column("limited\nby", Origin.MODELLED, lambda launch: launch.roofline.limited_by_short, left=True),
    Column("floor/\nestimate", Origin.MODELLED, lambda launch: percent(launch.roofline.fraction)),
)

COLUMNS: Mapping[str, Sequence[Column]] = {
    "gpu": (
        _given("language", left=True),
        _given("grid"),
        _given("block"),
        Column("warp\ninstr.", Origin.COUNTED, _counted("instructions.warp")),
        Column("FLOPs", Origin.COUNTED, lambda launch: count(launch.roofline.flops)),
        *map(_bytes_at, LEVELS["gpu"]),
        Column("sectors\n/request", Origin.COUNTED, _sectors_per_request),
        Column("diver-\ngent", Origin.COUNTED, _divergence),
        Column("bank\nconflicts", Origin.COUNTED, _counted(*CONFLICTS)),
        *_ROOFLINE,
    ),
    "neuron": (
        _given("language", left=True),
        _given("grid"),
        Column("tensor\ninstr.", Origin.COUNTED, _counted("instructions.tensor")),
        Column("vector\ninstr.", Origin.COUNTED, _counted("instructions.vector")),
        Column("scalar\ninstr.", Origin.COUNTED, _counted("instructions.scalar")),
        Column("gpsimd\ninstr.", Origin.COUNTED, _counted("instructions.gpsimd")),
        Column("FLOPs", Origin.COUNTED, lambda launch: count(launch.roofline.flops)),
        *map(_bytes_at, LEVELS["neuron"]),
        Column("SBUF\n/part.", Origin.COUNTED, _sized("sbuf.peak_bytes")),
        Column("PSUM\n/part.", Origin.COUNTED, _sized("psum.peak_bytes")),
        *_ROOFLINE,
    ),
}  # fmt: skip
"""By machine. Bytes by level of memory are told by the rows of `model/traffic.py`; those that are modelled are sums of
counts, taken for the traffic of a memory behind ideal caches.
"""


def cells_of(launch: LaunchReport) -> tuple[str, ...]:
    """What stands under each column of the launch's machine; one that a fault stopped has no figures."""
    columns = COLUMNS[launch.record.machine]
    if not launch.stopped:
        return tuple(column.cell(launch) for column in columns)
    given = [column.cell(launch) for column in columns if column.origin is Origin.GIVEN]  # the first ones
    return (*given, STOPPED, *[ABSENT] * (len(columns) - len(given) - 1))


def origins(machines: Iterable[str]) -> str:
    """Which of the machines' columns are counted and which modelled, in one sentence."""
    columns = [column for machine in machines for column in COLUMNS[machine]]
    named = {origin: _listed(column for column in columns if column.origin is origin) for origin in Origin}
    return (
        f"Of the columns, {named[Origin.COUNTED]} are counted; {named[Origin.MODELLED]} are modelled, with every peak"
        " taken for achievable."
    )


def _listed(columns: Iterable[Column]) -> str:
    *others, last = dict.fromkeys(in_one_line(column.heading) for column in columns)
    return f"{', '.join(others)} and {last}"
