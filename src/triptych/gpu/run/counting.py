"""What the workers counted, as counters of the launch and of each source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from triptych.core.counter_table import ALWAYS, COMPANIONS
from triptych.core.counters import Counters, counters_of
from triptych.core.launches import Account, Counted, Line, Sample
from triptych.gpu.hardware import PAIR_BYTES
from triptych.gpu.run.counting_plan import CountingPlan, Place
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.storage_table import StorageTable
from triptych.gpu.run.worker import Worker


def account_of(plan: CountingPlan, workers: Sequence[Worker], table: StorageTable) -> Account:
    """What the workers counted; nothing of theirs, nor of the table, is read any more when this returns."""
    vector = workers[0].counts.copy()
    for worker in workers[1:]:
        vector += worker.counts
    return Account(partial(_count, plan, vector, table.touched_pairs))


def sample_of(geometry: Geometry, table: StorageTable) -> Sample | None:
    """Which blocks ran, where that were not all of the grid."""
    ran, of = geometry.blocks, prod(geometry.grid)
    if ran == of:
        return None
    touched = [(one.loaded, one.stored) for one in table.touched]
    read, written = (
        sum(min(marks.size, np.count_nonzero(marks) * of / ran) for marks in each)
        for each in zip(*touched, strict=True)
    )
    return Sample(ran, of, PAIR_BYTES * round(read), PAIR_BYTES * round(written))


def _count(plan: CountingPlan, vector: NDArray[np.int64], touched_pairs: tuple[int, int]) -> Counted:
    """The counters of the launch, and of each line that ran."""
    values = np.zeros(len(plan.keys), np.int64)
    np.add.at(values, plan.rows, plan.coefficients * vector[plan.columns])
    total: dict[str, int] = {}
    by_place: dict[Place, dict[str, int]] = {}
    for (place, name), value in zip(plan.keys, values.tolist(), strict=True):
        if value:
            total[name] = total.get(name, 0) + value
            by_place.setdefault(place, {})[name] = value
    read, written = touched_pairs
    total["global.load.compulsory_bytes"] = PAIR_BYTES * read
    total["global.store.compulsory_bytes"] = PAIR_BYTES * written
    lines = [
        Line(place[0], _counters(tally), place[1])
        for place, tally in by_place.items()
        if place is not None and "instructions.warp" in tally
    ]
    lines.sort(key=lambda line: (line.where, line.frames))
    return _counters(total, ALWAYS["gpu"]), tuple(lines)


def _counters(tally: Mapping[str, int], always: Sequence[str] = ()) -> Counters:
    companions = (COMPANIONS[name] for name in tally.keys() & COMPANIONS.keys())
    values: dict[str, int | float] = {name: tally.get(name, 0) for name in sorted({*tally, *always, *companions})}
    warps = tally.get("instructions.warp", 0)
    if warps:
        values["threads.active_lanes"] = tally["instructions.thread"] / warps
    return counters_of("gpu", values)
