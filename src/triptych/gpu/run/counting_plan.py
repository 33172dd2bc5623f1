"""Which sums a kernel's counters are.

Every counter is a sum of what blocks, guarded instructions and memory sites counted. Which sum is a property of the
kernel: it is written down once, as coefficients, and each launch multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.source import SourceLocation
from triptych.gpu.flow import find_body
from triptych.gpu.hardware import SECTOR_BYTES, WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.spaces import ASYNCHRONOUS, GLOBAL, Cost
from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.analysis.memory_sites import MemorySite
from triptych.gpu.lower.memory import phases_of
from triptych.gpu.lower.records import CountLayout

Place = tuple[SourceLocation, tuple[SourceLocation, ...]] | None
Term = tuple[Place, str, int, int]
"""A counter of a place gains a multiple of a column: (place, counter, column, coefficient)."""


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """A kernel's counters as sums: row `rows[i]` gains `coefficients[i]` times column `columns[i]`."""

    keys: tuple[tuple[Place, str], ...]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    coefficients: NDArray[np.int64]


def plan_counting(analysis: KernelAnalysis) -> CountingPlan:
    """Writes the sums down."""
    terms = list(_terms(analysis))
    keys = tuple(dict.fromkeys((place, name) for place, name, _, _ in terms))
    number = {key: index for index, key in enumerate(keys)}
    rows = np.array([number[place, name] for place, name, _, _ in terms], np.int64)
    columns = np.array([column for _, _, column, _ in terms], np.int64)
    coefficients = np.array([coefficient for _, _, _, coefficient in terms], np.int64)
    return CountingPlan(keys, rows, columns, coefficients)


def _terms(analysis: KernelAnalysis) -> Iterator[Term]:
    columns = analysis.counts
    run_of = {index: analysis.runs[pieces.start] for pieces in analysis.pieces for index in pieces}
    waiting = {index for edge in analysis.standing for index in find_body(analysis.graph, edge)}
    waiters = {id(instruction) for index in waiting for instruction in analysis.bound[index]}
    for index, block in enumerate(analysis.bound):
        for instruction in block:
            if instruction.instruction.added:
                continue
            for number in sorted({index, run_of[index]}):
                for name, column, coefficient in _instruction_terms(instruction, columns, number):
                    yield _place_of(instruction), name, column, coefficient
                if index in waiting:
                    yield _place_of(instruction), "waiting.instructions", columns.warps(number), 1
            slot = analysis.guarded_flops.get(id(instruction))
            active = [columns.lanes(n) for n in {index, run_of[index]}] if slot is None else [columns.guarded(slot)]
            for column in active if instruction.form.flops else ():
                yield _place_of(instruction), instruction.form.flop_counter, column, instruction.form.flops
        if block:
            yield _place_of(block[-1]), "branches.divergent", columns.divergent(index), 1
    for index, site in enumerate(analysis.sites):
        for name, field, coefficient in _site_terms(site):
            yield _place_of(site.instruction), name, columns.site(index, field), coefficient
            if id(site.instruction) in waiters and name == f"shared.{site.kind}.wavefronts":
                yield _place_of(site.instruction), "waiting.wavefronts", columns.site(index, field), coefficient


def _place_of(instruction: BoundInstruction) -> Place:
    origin = instruction.instruction.origin
    return None if origin is None else (origin.where, origin.frames)


def _instruction_terms(
    instruction: BoundInstruction, columns: CountLayout, block: int
) -> Iterator[tuple[str, int, int]]:
    row = instruction.form.row
    warps = columns.warps(block)
    yield "instructions.warp", warps, 1
    yield "instructions.thread", columns.lanes(block), 1
    yield f"instructions.pipe.{row.pipe.value}", warps, 1
    if row.counts is not None:
        yield row.counts, warps, 1


def _site_terms(site: MemorySite) -> Iterator[tuple[str, str, int]]:
    """A site's counters, those of the short ways (full warps at neighbouring elements, or at one) written out."""
    if site.space.counted_as is None:
        return
    prefix, bytes_ = f"{site.space.counted_as}.{site.kind}", site.bytes
    if site.instruction.effect.copies_boxes and site.space is ASYNCHRONOUS:
        (copied,) = (kind for space, kind in site.instruction.effect.accesses if space is GLOBAL)
        yield f"tma.{copied}.boxes", "requests", 1
        yield f"tma.{copied}.bytes", "bytes", 1
    for field in ("requests", "contiguous", "broadcast"):
        yield f"{prefix}.requests", field, 1
    yield f"{prefix}.bytes", "bytes", 1
    for field in ("contiguous", "broadcast"):
        yield f"{prefix}.bytes", field, WARP_SIZE * bytes_
    if site.space.cost is Cost.SECTORS:
        yield f"{prefix}.sectors", "sectors", 1
        yield f"{prefix}.sectors", "broadcast", 1
        yield f"{prefix}.sectors", "contiguous", WARP_SIZE * bytes_ // SECTOR_BYTES
    if site.space.cost is Cost.WAVEFRONTS:
        phases = phases_of(site.kind, bytes_)
        wavefronts, conflicts = phases.contiguous
        yield f"{prefix}.wavefronts", "sectors", 1
        yield f"{prefix}.wavefronts", "broadcast", phases.broadcast
        yield f"{prefix}.wavefronts", "contiguous", wavefronts
        yield f"{prefix}.bank_conflicts", "conflicts", 1
        yield f"{prefix}.bank_conflicts", "contiguous", conflicts
