"""Source lines by what they cost, over all launches of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from triptych.core.counter_table import COUNTED, COUNTER_ROW
from triptych.core.counters import Counter, Counters, known_counters
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.model.pipes import PREFIX
from triptych.report.columns import ABSENT, CONFLICTS, REQUESTS, SECTORS, quotient, total
from triptych.report.quantities import count, percent, ratio, size

ORDER = "Hot lines: by the largest of their shares of instructions, sectors (or DMA bytes) and bank conflicts."
"""What `_costs` does, for a reader."""
INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "gpu": known_counters("instructions.warp"),
    "neuron": known_counters(*(f"instructions.{name}" for name in ("tensor", "vector", "scalar", "gpsimd", "dma"))),
}
"""By machine: what counts as an instruction of a line."""

_FLOPS = tuple(sorted(name for name in COUNTED if name.startswith(PREFIX)))
_DMA = known_counters("dma.load.bytes", "dma.store.bytes")
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line of a kernel, its counters summed over the kernel's launches, and its share of their instructions."""

    kernel: str
    machine: str
    language: str
    where: SourceLocation
    counters: Counters
    share: float
    frames: tuple[SourceLocation, ...] = ()
    """The callers that the line was inlined into, innermost first, where lines are told apart by them."""
    launches: int = 1
    """How many launches the counters are sums over."""


@dataclass(frozen=True, slots=True)
class LineColumn:
    """A heading and what stands under it for a line."""

    heading: str
    cell: Callable[[HotLine], str]


def _sectors_per_request(line: HotLine) -> str:
    value = quotient(line.counters, SECTORS, REQUESTS)
    return ABSENT if value is None else ratio(value)


def _summed(*names: str) -> Callable[[HotLine], str]:
    known_counters(*names)
    return lambda line: count(total(line.counters, *names))


LINE_COLUMNS: Mapping[str, Sequence[LineColumn]] = {
    "gpu": (
        LineColumn("instr.", lambda line: percent(line.share)),
        LineColumn("FLOPs", _summed(*_FLOPS)),
        LineColumn("sectors", _summed(*SECTORS)),
        LineColumn("sectors\n/request", _sectors_per_request),
        LineColumn("bank\nconflicts", _summed(*CONFLICTS)),
    ),
    "neuron": (
        LineColumn("instr.", lambda line: percent(line.share)),
        LineColumn("FLOPs", _summed(*_FLOPS)),
        LineColumn("DMA\nbytes", lambda line: size(total(line.counters, *_DMA))),
    ),
}
"""By machine."""


def hot_lines(launches: Iterable[LaunchReport], per_kernel: int = 5) -> list[HotLine]:
    """The costliest lines of every kernel, kernels in order of first launch.

    A line's cost is the largest of its shares of the kernel's instructions, sectors (or DMA bytes) and bank conflicts,
    so that a line that moves little but conflicts much is seen too.
    """
    gathered: dict[tuple[str, str, str], dict[SourceLocation, list[Counters]]] = {}
    times: dict[tuple[str, str, str], int] = {}
    for launch in launches:
        if launch.stopped:
            continue
        key = (launch.kernel, launch.record.machine, launch.language)
        times[key] = times.get(key, 0) + 1
        lines = gathered.setdefault(key, {})
        for line in launch.record.lines:
            lines.setdefault(line.where, []).append(line.counters)
    found: list[HotLine] = []
    for key, lines in gathered.items():
        machine = key[1]
        sums = {where: _sum(several, machine) for where, several in lines.items()}
        cost = _costs(sums, machine)
        ordered = sorted(sums, key=lambda where: (-max(cost[where]), where))[:per_kernel]
        found += [HotLine(*key, where, sums[where], cost[where][0], launches=times[key]) for where in ordered]
    return found


def lines_of(launch: LaunchReport) -> list[HotLine]:
    """All lines of one launch, told apart by the callers that they were inlined into, the costliest first."""
    record = launch.record
    gathered: dict[tuple[SourceLocation, tuple[SourceLocation, ...]], list[Counters]] = {}
    for line in record.lines:
        gathered.setdefault((line.where, line.frames), []).append(line.counters)
    found = {key: _sum(several, record.machine) for key, several in gathered.items()}
    cost = _costs(found, record.machine)
    ordered = sorted(found, key=lambda key: (-max(cost[key]), key))
    return [
        HotLine(record.kernel, record.machine, record.language, where, found[where, frames], share[0], frames)
        for (where, frames), share in ((key, cost[key]) for key in ordered)
    ]


def _sum(several: Sequence[Counters], machine: str) -> Counters:
    """Counts add; what does not (a ratio) is left out."""
    rows = COUNTER_ROW[machine]
    sums: dict[str, Counter] = {}
    for counters in several:
        for name, counter in counters.items():
            if rows[name].adds:
                before = sums[name].value if name in sums else 0
                sums[name] = Counter(before + counter.value, counter.unit, counter.provenance)
    return Counters(sums)


def _costs(sums: Mapping[_Key, Counters], machine: str) -> dict[_Key, tuple[float, ...]]:
    kinds = (INSTRUCTIONS[machine], SECTORS if machine == "gpu" else _DMA, CONFLICTS)
    wholes = [sum(total(counters, *names) for counters in sums.values()) or 1 for names in kinds]
    return {
        key: tuple(total(counters, *names) / whole for names, whole in zip(kinds, wholes, strict=True))
        for key, counters in sums.items()
    }
