"""Counters kept the plain way: sets and dictionaries, request by request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triptych.gpu.hardware import BANK_BYTES, BANKS, FIRST_HEAP_ADDRESS, PAIR_BYTES, SECTOR_BYTES
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.oracle.values import LANES

PHASE_BYTES = LANES * BANK_BYTES
"""Shared memory serves at most 128 bytes at a time: all lanes for up to 4 bytes each, half of them for 8 …"""
_PACKED: Mapping[str, str] = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}


@dataclass(frozen=True, slots=True)
class Touch:
    """What one lane reaches for: `size` bytes from an address of its space on."""

    lane: int
    address: int
    size: int

    def pieces(self, size: int) -> range:
        """The numbers of the pieces of memory of `size` bytes (sectors, pairs, words) that it reaches into."""
        return range(self.address // size, (self.address + self.size - 1) // size + 1)


def find_sectors(touches: Sequence[Touch]) -> set[int]:
    """The 32-byte sectors of global memory that a request moves."""
    return {sector for touch in touches for sector in touch.pieces(SECTOR_BYTES)}


def find_wavefronts(kind: str, touches: Sequence[Touch], size: int) -> tuple[int, int]:
    """The wavefronts of a request to shared memory, and how many of them bank conflicts caused.

    Lanes are served in phases; in a phase each bank gives one word a wavefront, to all lanes that ask for that word.
    """
    phase_lanes = _phase_lanes(kind, touches, size)
    phases: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for touch in touches:
        for word in touch.pieces(BANK_BYTES):
            phases[touch.lane // phase_lanes][word % BANKS].add(word)
    wavefronts = [max(len(words) for words in banks.values()) for banks in phases.values()]
    return sum(wavefronts), sum(wavefronts) - len(wavefronts)


def _phase_lanes(kind: str, touches: Sequence[Touch], size: int) -> int:
    """The lanes that an H200 serves together, by recorded counters."""
    if kind != "load" or size <= BANK_BYTES:
        return PHASE_BYTES // max(size, BANK_BYTES)
    if size == 8:
        return LANES
    places = {touch.lane: touch.address for touch in touches}
    shared = all(places.get(lane ^ 1, address) == address for lane, address in places.items())
    return 16 if shared else 8


@dataclass(slots=True)
class Counts:
    """The counters of one launch, under the names that a launch's record gives them."""

    tally: Counter[str] = field(default_factory=Counter[str])
    pairs: dict[str, set[int]] = field(default_factory=lambda: {"load": set(), "store": set()})
    """The 64-byte pairs of sectors that were read and written."""

    def count_instruction(self, bound: BoundInstruction, lanes: int, active: int) -> None:
        """One execution by a warp: `lanes` reach the instruction, `active` of them pass its guard."""
        row = bound.form.row
        self.tally["instructions.warp"] += 1
        self.tally["instructions.thread"] += lanes
        self.tally[f"instructions.pipe.{row.pipe.value}"] += 1
        if row.counts is not None:
            self.tally[row.counts] += 1
        if row.flops:
            name = bound.form.type.name
            numbers = 2 if name in _PACKED else 1
            self.tally[f"flops.{_PACKED.get(name, name)}"] += row.flops * numbers * active

    def count_divergence(self) -> None:
        """A branch at which lanes part."""
        self.tally["branches.divergent"] += 1

    def count_request(self, space: str, kind: str, touches: Sequence[Touch]) -> None:
        """A request of a warp to one space, `touches` of the same size each; parameters are not counted."""
        if not touches or space == "param":
            return
        prefix = f"{space}.{kind}"
        self.tally[f"{prefix}.requests"] += 1
        self.tally[f"{prefix}.bytes"] += sum(touch.size for touch in touches)
        if space == "global":
            self.tally[f"{prefix}.sectors"] += len(find_sectors(touches))
            pairs = self.pairs["load" if kind == "load" else "store"]
            pairs.update(
                pair for touch in touches for pair in touch.pieces(PAIR_BYTES) if touch.address < FIRST_HEAP_ADDRESS
            )
        if space == "shared":
            wavefronts, conflicts = find_wavefronts(kind, touches, max(touch.size for touch in touches))
            self.tally[f"{prefix}.wavefronts"] += wavefronts
            self.tally[f"{prefix}.bank_conflicts"] += conflicts

    def totals(self) -> dict[str, int]:
        """All counters by name."""
        compulsory = {f"global.{kind}.compulsory_bytes": PAIR_BYTES * len(pairs) for kind, pairs in self.pairs.items()}
        return {**self.tally, **compulsory}
