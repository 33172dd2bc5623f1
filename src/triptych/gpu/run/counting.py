"""What the workers counted, as counters of the launch and of each source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from triptych.core.counters import Counter, Counters, Provenance
from triptych.core.launches import Line
from triptych.core.source import SourceLocation
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.lower.analysis import KernelAnalysis, MemorySite
from triptych.gpu.lower.layout import WARP_SIZE
from triptych.gpu.lower.memory import BankCount
from triptych.gpu.run.workers import StorageTable, Worker

Place = tuple[SourceLocation, tuple[SourceLocation, ...]] | None
Tally = dict[str, int]

_UNITS: Mapping[str, str] = {
    "instructions": "instructions", "branches": "branches", "barriers": "barriers", "requests": "requests",
    "sectors": "sectors", "bytes": "bytes", "wavefronts": "wavefronts", "bank_conflicts": "wavefronts",
    "flops": "FLOPs",
}  # fmt: skip
_NUMBERED_TYPES: Mapping[str, str] = {"f16x2": "f16", "bf16x2": "bf16"}


def count_launch(
    analysis: KernelAnalysis, workers: Sequence[Worker], table: StorageTable
) -> tuple[Counters, tuple[Line, ...]]:
    """The counters of the launch, and of each line that ran."""
    by_place = _tally(analysis, workers)
    total: Tally = defaultdict(int)
    for tally in by_place.values():
        for name, value in tally.items():
            total[name] += value
    read, written = table.touched_pairs
    total["global.load.compulsory_bytes"] = 64 * read
    total["global.store.compulsory_bytes"] = 64 * written
    lines = [
        Line(place[0], _as_counters(tally), place[1])
        for place, tally in by_place.items()
        if place is not None and tally["instructions.warp"]
    ]
    lines.sort(key=lambda line: (line.where, line.frames))
    return _as_counters(total), tuple(lines)


def _place_of(instruction: BoundInstruction) -> Place:
    origin = instruction.instruction.origin
    return None if origin is None else (origin.where, origin.frames)


def _tally(analysis: KernelAnalysis, workers: Sequence[Worker]) -> dict[Place, Tally]:
    counts = np.sum([w.counts for w in workers], axis=0)
    divergent = np.sum([w.divergent for w in workers], axis=0)
    by_place: dict[Place, Tally] = defaultdict(lambda: defaultdict(int))
    blocks = len(analysis.graph.blocks)
    for index, block in enumerate(analysis.bound):
        warps, lanes = int(counts[2 * index]), int(counts[2 * index + 1])
        if not warps:
            continue
        for instruction in block:
            slot = analysis.guarded_flops.get(id(instruction))
            active = lanes if slot is None else int(counts[2 * blocks + slot])
            _add_instruction(by_place[_place_of(instruction)], instruction, warps, lanes, active)
        if block and divergent[index]:
            by_place[_place_of(block[-1])]["branches.divergent"] += int(divergent[index])
    _add_sites(by_place, analysis, workers)
    return by_place


def _add_instruction(tally: Tally, instruction: BoundInstruction, warps: int, lanes: int, active: int) -> None:
    row = instruction.form.row
    tally["instructions.warp"] += warps
    tally["instructions.thread"] += lanes
    tally[f"instructions.pipe.{row.pipe.value}"] += warps
    if row.mnemonic in ("bra", "brx"):
        tally["branches"] += warps
    if row.mnemonic in ("bar", "barrier"):
        tally["barriers"] += warps
    if row.flops:
        name = instruction.form.type.name
        width = 2 if name in _NUMBERED_TYPES else 1
        tally[f"flops.{_NUMBERED_TYPES.get(name, name)}"] += row.flops * width * active


def _add_sites(by_place: dict[Place, Tally], analysis: KernelAnalysis, workers: Sequence[Worker]) -> None:
    for index, site in enumerate(analysis.sites):
        records = [worker.sites[index] for worker in workers]
        totals = {name: sum(getattr(r, name) for r in records) for name in _SITE_COUNTERS}
        _add_short_ways(site, totals)
        if totals["requests"]:
            _add_site(by_place[_place_of(site.instruction)], site, totals)


_SITE_COUNTERS = ("requests", "sectors", "bytes", "conflicts", "neighbours", "same")


def _add_short_ways(site: MemorySite, totals: dict[str, int]) -> None:
    """Adds what the requests of full warps at neighbouring elements, or at one element, come to."""
    size = site.bytes
    neighbours, same = totals["neighbours"], totals["same"]
    totals["requests"] += neighbours + same
    totals["bytes"] += (neighbours + same) * WARP_SIZE * size
    whole = size if site.space == "global" else BankCount.phase_count(size)
    totals["sectors"] += neighbours * whole + same


def _add_site(tally: Tally, site: MemorySite, totals: Mapping[str, int]) -> None:
    prefix = f"{site.space}.{site.kind}"
    tally[f"{prefix}.requests"] += totals["requests"]
    tally[f"{prefix}.bytes"] += totals["bytes"]
    if site.space == "global":
        tally[f"{prefix}.sectors"] += totals["sectors"]
    if site.space == "shared":
        tally[f"{prefix}.wavefronts"] += totals["sectors"]
        tally[f"{prefix}.bank_conflicts"] += totals["conflicts"]


def _as_counters(tally: Mapping[str, int]) -> Counters:
    counters = {name: Counter(tally[name], _unit(name), Provenance.COUNTED_PTX) for name in sorted(tally)}
    warps = tally.get("instructions.warp", 0)
    if warps:
        lanes = tally["instructions.thread"] / warps
        counters["threads.active_lanes"] = Counter(min(lanes, WARP_SIZE), "lanes", Provenance.COUNTED_PTX)
    return Counters(counters)


def _unit(name: str) -> str:
    words = name.split(".")
    last = words[-1]
    return "bytes" if last.endswith("bytes") else _UNITS.get(last) or _UNITS[words[0]]
