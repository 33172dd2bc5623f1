"""The page of times: what calls took on a GPU beside what the model says, from `docs/data/kernel_times.json`.

`benchmarks/hardware/count_times.py` writes the data: times, and what was counted of the same programs. The estimates
are made here, by the model as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypedDict

from generators.markdown import code, table
from generators.nkibench import rank_correlation
from triptych.chips import Chip, load
from triptych.core.counters import counters_of
from triptych.core.launches import Account, LaunchRecord
from triptych.core.plan import LaunchShape
from triptych.execution.modelling import roofline_of
from triptych.model import Roofline
from triptych.report.quantities import duration, size

DATA = Path(__file__).resolve().parents[1] / "data" / "kernel_times.json"
CHIP = "h200"
LEVEL = 0.9
"""The share of the calls that lie within the error bar: as many lie above it as below."""


class _Times(TypedDict):
    median: float
    first_quartile: float
    third_quartile: float


@dataclass(frozen=True, slots=True)
class Timed:
    """A call of a function at a size: what the device took, and the model's place of each of its launches."""

    kernel: str
    dtype: str
    size: str
    bytes: int
    """Of DRAM, at least: as counted."""
    cold: _Times
    warm: _Times
    rooflines: tuple[Roofline, ...]

    @property
    def estimate_s(self) -> float:
        """Modelled: all launches, one behind the other."""
        return sum(one.estimate_s for one in self.rooflines)

    @property
    def measured_s(self) -> float:
        """The median of the calls whose arrays were in DRAM, as the model has it, less what events take themselves."""
        return self.cold["median"] - events_s()

    @property
    def factor(self) -> float:
        """Measured over modelled."""
        return self.measured_s / self.estimate_s

    @property
    def limited_by(self) -> str:
        """What the model says takes longest in the longest launch."""
        return max(self.rooflines, key=lambda one: one.estimate_s).limited_by_short


@cache
def data() -> Mapping[str, Any]:
    """What is recorded."""
    return json.loads(DATA.read_text(encoding="utf-8"))


@cache
def events_s() -> float:
    """Seconds between events with nothing between them."""
    (row,) = (row for row in data()["cases"] if row["case"] == "nothing")
    return row["cold"]["median"]


@cache
def calls() -> tuple[Timed, ...]:
    """Those that were measured and counted."""
    chip = load(CHIP)
    return tuple(_timed(row, chip) for row in data()["cases"] if "counted" in row)


def _timed(row: Mapping[str, Any], chip: Chip) -> Timed:
    language = row["kernel"].split(".")[0]
    pairs = zip(row["counted"], row["launches"], strict=True)
    placed = tuple(roofline_of(record_of(one, taken, language), chip) for one, taken in pairs)
    moved = sum(one.bytes for one in placed)
    return Timed(row["kernel"], row["dtype"], row["case"].split(" ", 2)[2], moved, row["cold"], row["warm"], placed)


def record_of(counted: Mapping[str, Any], taken: Mapping[str, Any], language: str) -> LaunchRecord:
    """The record of a launch, as far as the model looks at it: what was counted, and the shared memory it took."""
    shape = LaunchShape(tuple(counted["grid"]), tuple(counted["block"]), taken["dynamic_shared_bytes"])
    account = Account.of(counters_of("gpu", counted["counters"]))
    static = taken["static_shared_bytes"]
    return LaunchRecord(counted["kernel"], "gpu", language, counted["target"], shape, static, account)


# --- Statistics ---------------------------------------------------------------------------------------------------


def error_bar(factors: Iterable[float]) -> tuple[float, float]:
    """The ends between which LEVEL of the factors lie."""
    cuts = quantiles(factors, n=200, method="inclusive")
    least = round(100 * (1 - LEVEL))
    return cuts[least - 1], cuts[199 - least]


def kinds(found: Sequence[Timed]) -> Mapping[str, Sequence[Timed]]:
    """The calls by what the model says limits them; those of most calls first."""
    by_kind: dict[str, list[Timed]] = {}
    for one in found:
        by_kind.setdefault(one.limited_by, []).append(one)
    return dict(sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0])))


# --- The page -----------------------------------------------------------------------------------------------------

_HEAD = """\
# Modelled and measured times

Estimates are modelled: peaks for achievable rates, and one launch. Here they stand beside what an H200 took, for
triptych's own kernels, at sizes from one launch to {largest} of arrays: {count} calls of CUDA C++ and of Triton. On
{date} an {device} (driver {driver}; multiprocessors at up to {clock}) ran the very programs
whose work was counted, assembled by ptxas ({assembler}).
`record_times.py` in `benchmarks/hardware` took the times, `count_times.py` there counts; the factors on this page are
made from both by the model as it is.

*Measured* is the median of {least} to {most} calls, each timed by events of the driver, less the {events} that events
take themselves, with L2 full of something else: before each, 256 MiB of zeros were read. *Modelled* is the estimate for
`{chip}`, all launches of a call one behind the other. The *factor* is measured over modelled: above 1 where the call
takes longer than the model says.

Over all calls the median factor is {median:.2f}, {level:.0%} of the factors lie from {low:.2f} to {high:.2f}, and the
ranks of modelled and measured times correlate to {rank:.3f}. These ends, rounded outwards, are the error bar of the
[chip's file](reference/chips.md#h200), which [the judge](judge.md) tells with its times.

## By what limits a call

"""


def page() -> str:
    """The page's Markdown."""
    found = calls()
    return (
        "".join((_HEAD.format_map(_figures(found)), _summary(found), _reasons(), _helpers(), _all(found))).rstrip()
        + "\n"
    )


_REASONS = """\
## Why they differ

- **DRAM reaches {reached:.0%} of the datasheet's bandwidth** (1 GiB read, below), and the model takes all of it.
- **First loads and last stores**: a call of a few µs waits for DRAM once or more often, about 0.7 µs each, beside its
  launch.
- **Chains**: sums along a row (`cumsum`, `reduce_sum` of one row) go from barrier to barrier, and each load waits for
  the one before it. The model knows how long an arithmetic result takes, not how long memory and barriers do.
- **Rows that are read again**: the model supposes that L2 has them. The rows of `softmax` that are at work at once, of
  50257 elements each, are more than it holds.
- **L1**: the model takes all that warps ask for to come from L2. What the warps of `matmul_naive` share is in L1, so
  that they are quicker than the model says.
- **Independent instructions**: the model supposes that each needs the result of the one before. The products of
  `matmul_mma` do not, so that a few warps of it are quicker than the model says.
- **Waits within blocks**: a step of `attention_wgmma` or `matmul_wmma` waits for its tiles and its products, with
  little else to do meanwhile. Registers, of which `ptxas` decides, allow fewer warps than the model supposes.

"""


def _reasons() -> str:
    (row,) = (row for row in data()["cases"] if row["case"] == "read 1 GiB")
    seconds = row["cold"]["median"] - events_s()
    return _REASONS.format(reached=(1 << 30) / seconds / load(CHIP).memory_bytes_per_s)


def _figures(found: Sequence[Timed]) -> Mapping[str, Any]:
    low, high = error_bar(one.factor for one in found)
    name, driver, clock, *_ = (one.strip() for one in data()["device"][1].split(","))
    counts = [row["cold"]["count"] for row in data()["cases"] if "counted" in row]
    return {
        "events": duration(events_s()),
        "largest": size(max(one.bytes for one in found)), "count": len(found), "date": data()["date"], "device": name,
        "driver": driver, "clock": clock, "assembler": data()["assemblers"][0], "least": min(counts),
        "most": max(counts), "chip": CHIP, "level": LEVEL, "low": low, "high": high,
        "median": median(one.factor for one in found),
        "rank": rank_correlation([one.estimate_s for one in found], [one.measured_s for one in found]),
    }  # fmt: skip


def _summary(found: Sequence[Timed]) -> str:
    rows: list[tuple[str, ...]] = []
    for kind, some in (*kinds(found).items(), ("all", found)):
        factors = [one.factor for one in some]
        low, high = error_bar(factors) if len(some) > 1 else (factors[0], factors[0])
        worst = max(some, key=lambda one: max(one.factor, 1 / one.factor))
        told = f"{code(worst.kernel)}, {worst.dtype}, {worst.size}: {worst.factor:.2f}"
        rows.append((kind, str(len(some)), f"{median(factors):.2f}", f"{low:.2f} to {high:.2f}", told))
    return table(("limited by", "calls", "median factor", f"{LEVEL:.0%} of the factors", "farthest"), rows)


_HELPERS = """\
## What the device reaches

Taken in the same run, to understand the factors by; between events, their own time included, and as one of many in a
graph.

"""


def _helpers() -> str:
    rows = (
        (row["case"], duration(row["cold"]["median"]), duration(row["warm"]["median"]))
        for row in data()["cases"] if "kernel" not in row and "cold" in row
    )  # fmt: skip
    return _HELPERS + table(("what", "between events", "in a graph"), rows)


_ALL = """\
## All calls

*Warm*: one of many in a graph, one behind the other, with what L2 keeps of the arrays; the model knows no such state.

"""


def _all(found: Sequence[Timed]) -> str:
    headings = ("kernel", "T", "size", "limited by", "modelled", "measured", "factor", "quartiles", "warm")
    return _ALL + table(headings, map(_cells, found)) + "".join(_left_out())


def _cells(one: Timed) -> tuple[str, ...]:
    first, third = (duration(one.cold[key] - events_s()) for key in ("first_quartile", "third_quartile"))
    return (
        code(one.kernel), one.dtype, one.size, one.limited_by, duration(one.estimate_s), duration(one.measured_s),
        f"{one.factor:.2f}", f"{first} to {third}", duration(one.warm["median"]),
    )  # fmt: skip


def _left_out() -> Iterator[str]:
    """What has no factor, and why."""
    yield "Left out: `triton.grouped_matmul`, whose table holds addresses that the host computed"
    for row in data()["cases"]:
        if "failed" in row:
            yield f"; {row['case']} ({row['failed']})"
        elif "kernel" in row and "counted" not in row:
            yield f"; {row['case']} ({duration(row['cold']['median'] - events_s())}), not counted yet"
    yield ".\n"
