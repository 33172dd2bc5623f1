"""Bytes by level of memory: which counters make them up, and at which bandwidth they move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triptych.core.counters import Counters, known_counters
from triptych.core.gpu_facts import SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Level:
    """A level of memory: its names, the counters of its traffic and what they stand for, and its bandwidth."""

    key: str
    """By which code asks for it."""
    label: str
    """With what its bytes are; the JSON and the counters of the model have it so."""
    short: str
    """Without, for a table's heading."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """The counters of what is read, and written; atomics count as writes."""
    bytes_per_s: Callable[[Any], float]
    """The peak bandwidth, of a chip of the level's machine."""
    bytes_each: int = 1
    """Bytes that each unit of the counters stands for."""
    compulsory: bool = False
    """Whether any program that does this work must move these bytes."""
    modelled: bool = False
    """Whether the bytes rest on a supposition about caches; else each was counted where it moved."""

    def __post_init__(self) -> None:
        """`UnknownCounter` for a counter that is none."""
        known_counters(*self.reads, *self.writes)

    def bytes(self, counters: Counters) -> int:
        """The bytes moved at this level."""
        return self.bytes_each * sum(int(counters.value(name)) for name in (*self.reads, *self.writes))


# L1 misses are not modelled: every sector that a warp requests counts as L2 traffic.
LEVELS: Mapping[str, Sequence[Level]] = {
    "gpu": (
        Level(
            "dram", "DRAM (compulsory)", "DRAM",
            ("global.load.compulsory_bytes",), ("global.store.compulsory_bytes",),
            lambda chip: chip.dram_bytes_per_s, compulsory=True, modelled=True,
        ),
        Level(
            "l2", "L2 (global sectors requested)", "L2",
            ("global.load.sectors",), ("global.store.sectors", "global.atomic.sectors"),
            lambda chip: chip.l2_bytes_per_s, bytes_each=SECTOR_BYTES, modelled=True,
        ),
    ),
    "neuron": (
        Level(
            "hbm", "HBM (compulsory)", "HBM",
            ("hbm.load.compulsory_bytes",), ("hbm.store.compulsory_bytes",),
            lambda chip: chip.core_hbm_bytes_per_s, compulsory=True, modelled=True,
        ),
        Level(
            "dma", "DMA (bytes moved)", "DMA", ("dma.load.bytes",), ("dma.store.bytes",),
            lambda chip: chip.dma_engines_per_core * chip.dma_engine_bytes_per_s,
        ),
    ),
}  # fmt: skip
"""By machine; the headline level first."""
