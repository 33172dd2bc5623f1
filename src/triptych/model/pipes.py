"""FLOPs by pipe: which peak a counted FLOP runs at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.chips import Chip
from triptych.core.counters import Counters

PREFIX = "flops."


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs on one pipe of a chip."""

    pipe: str
    flops: int
    peak: float
    """FLOP/s."""

    @property
    def seconds(self) -> float:
        """At the peak."""
        return self.flops / self.peak


# Where a chip lacks a pipe, its FLOPs are placed on the first of these that it has.
_FALLBACKS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("f32",),
    "neuron": ("tensor.bf16", "vector"),
}
# Before these: tensor cores without a type's own way take a wider one's.
_WIDER: Mapping[str, tuple[str, ...]] = {
    "tensor.b1": ("tensor.s8",),
    "tensor.s4": ("tensor.s8",),
    "tensor.fp8": ("tensor.f16",),
    "tensor.bf16": ("tensor.f16",),
    "tensor.tf32": ("tensor.f16",),
    "tensor.f64": ("f64",),
}


def work_by_pipe(counters: Counters, chip: Chip) -> tuple[tuple[Work, ...], tuple[str, ...]]:
    """The FLOPs of every pipe that did any, and a note for each pipe that the chip lacks."""
    rows: list[Work] = []
    notes: list[str] = []
    for name in counters:
        flops = counters.value(name)
        if not name.startswith(PREFIX) or not flops:
            continue
        pipe = name.removeprefix(PREFIX)
        peak = chip.flops_per_s.get(pipe)
        if peak is None:
            placed = next(key for key in (*_WIDER.get(pipe, ()), *_FALLBACKS[chip.machine]) if key in chip.flops_per_s)
            peak = chip.flops_per_s[placed]
            notes.append(f"{chip.name} has no {pipe} pipe: its FLOPs are placed on the {placed} pipe.")
        rows.append(Work(pipe, int(flops), peak))
    return tuple(rows), tuple(notes)


def dominant(work: tuple[Work, ...], chip: Chip) -> tuple[str, float]:
    """The pipe whose FLOPs take longest and its peak; the plain f32 pipe where nothing was computed."""
    if not work:
        idle = "f32" if chip.machine == "gpu" else "vector"
        return idle, chip.flops_per_s[idle]
    longest = max(work, key=lambda row: row.seconds)
    return longest.pipe, longest.peak
