"""The columns of the launch table: a row per column, which says its heading and how a launch fills it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triptych.core.counters import Counters
from triptych.report.launch import Launch
from triptych.report.quantities import count, duration, extent, percent, ratio, size

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading (a newline breaks it, to keep columns narrow) and what stands under it for a launch."""

    heading: str
    cell: Callable[[Launch], str]
    left: bool = False
    """Words stand left, numbers right."""


def total(counters: Counters, *names: str) -> float:
    """The sum of counters, those that were not counted as 0."""
    return sum(counters.value(name) for name in names)


def quotient(counters: Counters, upper: Sequence[str], lower: Sequence[str]) -> float | None:
    """One sum over another, None where the lower one is 0."""
    below = total(counters, *lower)
    return total(counters, *upper) / below if below else None


_GLOBAL = ("global.load", "global.store", "global.atomic")
_SHARED = ("shared.load", "shared.store")
SECTORS = tuple(f"{kind}.sectors" for kind in _GLOBAL)
REQUESTS = tuple(f"{kind}.requests" for kind in _GLOBAL)
CONFLICTS = tuple(f"{kind}.bank_conflicts" for kind in _SHARED)


def _counted(*names: str) -> Callable[[Launch], str]:
    return lambda launch: count(total(launch.record.counters, *names))


def _sectors_per_request(launch: Launch) -> str:
    value = quotient(launch.record.counters, SECTORS, REQUESTS)
    return ABSENT if value is None else ratio(value)


def _divergence(launch: Launch) -> str:
    value = quotient(launch.record.counters, ("branches.divergent",), ("branches",))
    return ABSENT if value is None else percent(value)


def _traffic(level: int) -> Callable[[Launch], str]:
    return lambda launch: size(launch.roofline.traffic[level].bytes)


_ROOFLINE = (
    Column("FLOP\n/byte", lambda launch: ratio(launch.roofline.intensity)),
    Column("ridge", lambda launch: ratio(launch.roofline.ridge_point)),
    Column("bound", lambda launch: launch.roofline.bound, left=True),
    Column("floor", lambda launch: duration(launch.roofline.floor_s)),
    Column("estimate", lambda launch: duration(launch.roofline.estimate_s)),
    Column("floor/\nestimate", lambda launch: percent(launch.roofline.fraction)),
)

COLUMNS: Mapping[str, Sequence[Column]] = {
    "gpu": (
        Column("language", lambda launch: launch.record.language, left=True),
        Column("grid", lambda launch: extent(launch.record.grid)),
        Column("block", lambda launch: extent(launch.record.block)),
        Column("warp\ninstr.", _counted("instructions.warp")),
        Column("FLOPs", lambda launch: count(launch.roofline.flops)),
        Column("DRAM\nbytes", _traffic(0)),
        Column("L2\nbytes", _traffic(1)),
        Column("sectors\n/request", _sectors_per_request),
        Column("diver-\ngent", _divergence),
        Column("bank\nconflicts", _counted(*CONFLICTS)),
        *_ROOFLINE,
    ),
    "neuron": (
        Column("language", lambda launch: launch.record.language, left=True),
        Column("grid", lambda launch: extent(launch.record.grid)),
        Column("tensor\ninstr.", _counted("instructions.tensor")),
        Column("vector\ninstr.", _counted("instructions.vector")),
        Column("scalar\ninstr.", _counted("instructions.scalar")),
        Column("gpsimd\ninstr.", _counted("instructions.gpsimd")),
        Column("FLOPs", lambda launch: count(launch.roofline.flops)),
        Column("HBM\nbytes", _traffic(0)),
        Column("DMA\nbytes", _traffic(1)),
        Column("SBUF\n/part.", lambda launch: size(launch.record.counters.value("sbuf.peak_bytes"))),
        Column("PSUM\n/part.", lambda launch: size(launch.record.counters.value("psum.peak_bytes"))),
        *_ROOFLINE,
    ),
}  # fmt: skip
"""By machine. DRAM and HBM bytes are compulsory ones; L2 bytes are the sectors requested; DMA bytes were moved."""
