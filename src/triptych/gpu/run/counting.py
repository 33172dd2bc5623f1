"""What the workers counted, as counters of the launch and of each source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from triptych.core.counters import Counter, Counters, Provenance
from triptych.core.launches import Line
from triptych.gpu.run.counting_plan import CountingPlan, Place
from triptych.gpu.run.workers import StorageTable, Worker

_UNITS: Mapping[str, str] = {
    "instructions": "instructions", "branches": "branches", "barriers": "barriers", "requests": "requests",
    "sectors": "sectors", "bytes": "bytes", "wavefronts": "wavefronts", "bank_conflicts": "wavefronts",
    "flops": "FLOPs",
}  # fmt: skip


def count_launch(
    plan: CountingPlan, workers: Sequence[Worker], table: StorageTable
) -> tuple[Counters, tuple[Line, ...]]:
    """The counters of the launch, and of each line that ran."""
    vector = np.sum([np.concatenate([w.counts, w.divergent, w.sites.ravel()]) for w in workers], axis=0)
    values = np.zeros(len(plan.keys), np.int64)
    np.add.at(values, plan.rows, plan.coefficients * vector[plan.columns])
    total: dict[str, int] = {}
    by_place: dict[Place, dict[str, int]] = {}
    for (place, name), value in zip(plan.keys, values.tolist(), strict=True):
        if value:
            total[name] = total.get(name, 0) + value
            by_place.setdefault(place, {})[name] = value
    read, written = table.touched_pairs
    total["global.load.compulsory_bytes"] = 64 * read
    total["global.store.compulsory_bytes"] = 64 * written
    lines = [
        Line(place[0], _as_counters(tally), place[1])
        for place, tally in by_place.items()
        if place is not None and "instructions.warp" in tally
    ]
    lines.sort(key=lambda line: (line.where, line.frames))
    return _as_counters(total, _ALWAYS), tuple(lines)


_ALWAYS = ("branches", "branches.divergent", "instructions.thread", "instructions.warp")
"""Counters of a launch that are there even when they are 0."""


def _as_counters(tally: Mapping[str, int], always: Sequence[str] = ()) -> Counters:
    names = sorted({*tally, *always, *_with_conflicts(tally)})
    counters = {name: Counter(tally.get(name, 0), _unit(name), Provenance.COUNTED_PTX) for name in names}
    warps = tally.get("instructions.warp", 0)
    if warps:
        lanes = tally["instructions.thread"] / warps
        counters["threads.active_lanes"] = Counter(lanes, "lanes", Provenance.COUNTED_PTX)
    return Counters(counters)


def _with_conflicts(tally: Mapping[str, int]) -> list[str]:
    """Where there were wavefronts, the conflicts among them are told even when there were none."""
    return [name.replace("wavefronts", "bank_conflicts") for name in tally if name.endswith(".wavefronts")]


def _unit(name: str) -> str:
    words = name.split(".")
    last = words[-1]
    return "bytes" if last.endswith("bytes") else _UNITS.get(last) or _UNITS[words[0]]
