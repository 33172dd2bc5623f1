"""Which sums a kernel's counters are.

Every counter is a sum of what blocks, guarded instructions and memory sites counted. Which sum is a property of the
kernel: it is written down once, as coefficients, and each launch multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.source import SourceLocation
from triptych.gpu.hardware import SECTOR_BYTES, WARP_SIZE
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.lower.analysis import KernelAnalysis
from triptych.gpu.lower.memory import phases_of
from triptych.gpu.lower.memory_sites import MemorySite
from triptych.gpu.lower.records import Site

Place = tuple[SourceLocation, tuple[SourceLocation, ...]] | None
Term = tuple[Place, str, int, int]
"""A counter of a place gains a multiple of a column: (place, counter, column, coefficient)."""

_NUMBERED_TYPES: Mapping[str, str] = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
_SITE_FIELDS = Site.size() // 8


@dataclass(frozen=True, slots=True)
class Columns:
    """Where each of the workers' numbers stands in the vector that the coefficients multiply."""

    blocks: int
    guards: int

    def warps(self, block: int) -> int:
        """Executions of a block."""
        return 2 * block

    def lanes(self, block: int) -> int:
        """Lanes over all executions of a block."""
        return 2 * block + 1

    def guarded(self, place: int) -> int:
        """Lanes over all executions of a guarded instruction in which the guard held."""
        return 2 * self.blocks + place

    def divergent(self, block: int) -> int:
        """Times that lanes parted at the end of a block."""
        return 2 * self.blocks + self.guards + block

    def site(self, index: int, field: str) -> int:
        """A counter of a memory site."""
        return 3 * self.blocks + self.guards + index * _SITE_FIELDS + Site.position(field)


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
    columns = Columns(analysis.count_columns, len(analysis.guarded_flops))
    run_of = {index: analysis.runs[pieces.start] for pieces in analysis.pieces for index in pieces}
    for index, block in enumerate(analysis.bound):
        for instruction in block:
            if instruction.instruction.added:
                continue
            for number in sorted({index, run_of[index]}):
                for name, column, coefficient in _instruction_terms(instruction, columns, number):
                    yield _place_of(instruction), name, column, coefficient
            slot = analysis.guarded_flops.get(id(instruction))
            active = [columns.lanes(n) for n in {index, run_of[index]}] if slot is None else [columns.guarded(slot)]
            for name, coefficient in _flop_terms(instruction):
                for column in active:
                    yield _place_of(instruction), name, column, coefficient
        if block:
            yield _place_of(block[-1]), "branches.divergent", columns.divergent(index), 1
    for index, site in enumerate(analysis.sites):
        for name, field, coefficient in _site_terms(site):
            yield _place_of(site.instruction), name, columns.site(index, field), coefficient


def _place_of(instruction: BoundInstruction) -> Place:
    origin = instruction.instruction.origin
    return None if origin is None else (origin.where, origin.frames)


def _instruction_terms(instruction: BoundInstruction, columns: Columns, block: int) -> Iterator[tuple[str, int, int]]:
    row = instruction.form.row
    warps = columns.warps(block)
    yield "instructions.warp", warps, 1
    yield "instructions.thread", columns.lanes(block), 1
    yield f"instructions.pipe.{row.pipe.value}", warps, 1
    if row.counts is not None:
        yield row.counts, warps, 1


def _flop_terms(instruction: BoundInstruction) -> Iterator[tuple[str, int]]:
    flops = instruction.form.row.flops
    if flops:
        name = instruction.form.type.name
        width = 2 if name in _NUMBERED_TYPES else 1
        yield f"flops.{_NUMBERED_TYPES.get(name, name)}", flops * width


def _site_terms(site: MemorySite) -> Iterator[tuple[str, str, int]]:
    """A site's counters, those of the short ways (full warps at neighbouring elements, or at one) written out."""
    if site.space in ("param", "frame"):  # not memory traffic, however it is reached
        return
    prefix, bytes_ = f"{site.space}.{site.kind}", site.bytes
    for field in ("requests", "contiguous", "broadcast"):
        yield f"{prefix}.requests", field, 1
    yield f"{prefix}.bytes", "bytes", 1
    for field in ("contiguous", "broadcast"):
        yield f"{prefix}.bytes", field, WARP_SIZE * bytes_
    if site.space == "global":
        yield f"{prefix}.sectors", "sectors", 1
        yield f"{prefix}.sectors", "broadcast", 1
        yield f"{prefix}.sectors", "contiguous", WARP_SIZE * bytes_ // SECTOR_BYTES
    if site.space == "shared":
        phases = phases_of(site.kind, bytes_)
        wavefronts, conflicts = phases.contiguous
        yield f"{prefix}.wavefronts", "sectors", 1
        yield f"{prefix}.wavefronts", "broadcast", phases.broadcast
        yield f"{prefix}.wavefronts", "contiguous", wavefronts
        yield f"{prefix}.bank_conflicts", "conflicts", 1
        yield f"{prefix}.bank_conflicts", "contiguous", conflicts
