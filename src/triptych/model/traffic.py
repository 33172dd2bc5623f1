"""Bytes by level of memory: which counters make them up, and at which bandwidth they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.chips import Chip, GpuChip, NeuronChip
from triptych.core.counters import Counters, known_counters
from triptych.core.gpu_facts import SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Level:
    """A level of memory: the counters of its traffic, and the bytes that each of their units stands for."""

    name: str
    counters: tuple[str, ...]
    bytes_each: int
    compulsory: bool
    """Whether any program that does this work must move these bytes."""

    def __post_init__(self) -> None:
        """`UnknownCounter` for a counter that is none."""
        known_counters(*self.counters)

    def bytes(self, counters: Counters) -> int:
        """The bytes moved at this level."""
        return self.bytes_each * sum(int(counters.value(name)) for name in self.counters)


# The headline level first. L1 misses are not modelled: every sector that a warp requests counts as L2 traffic.
LEVELS: Mapping[str, Sequence[Level]] = {
    "gpu": (
        Level("DRAM (compulsory)", ("global.load.compulsory_bytes", "global.store.compulsory_bytes"), 1, True),
        Level(
            "L2 (global sectors requested)",
            ("global.load.sectors", "global.store.sectors", "global.atomic.sectors"),
            SECTOR_BYTES,
            False,
        ),
    ),
    "neuron": (
        Level("HBM (compulsory)", ("hbm.load.compulsory_bytes", "hbm.store.compulsory_bytes"), 1, True),
        Level("DMA (bytes moved)", ("dma.load.bytes", "dma.store.bytes"), 1, False),
    ),
}


def bandwidths(chip: Chip) -> tuple[float, ...]:
    """Bytes a second of the chip's levels, in the order of `LEVELS`."""
    match chip:
        case GpuChip():
            return chip.dram_bytes_per_s, chip.l2_bytes_per_s
        case NeuronChip():
            return chip.core_hbm_bytes_per_s, chip.dma_engines_per_core * chip.dma_engine_bytes_per_s
