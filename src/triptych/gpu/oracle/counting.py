"""Counters kept the plain way: sets and dictionaries, request by request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from triptych.core.source import SourceLocation
from triptych.gpu.hardware import BANK_BYTES, BANKS, FIRST_HEAP_ADDRESS, PAIR_BYTES, SECTOR_BYTES
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.spaces import Cost, Space
from triptych.gpu.oracle.values import LANES

PHASE_BYTES = LANES * BANK_BYTES
"""Shared memory serves at most 128 bytes at a time: all lanes for up to 4 bytes each, half of them for 8 …"""


Place = tuple[SourceLocation, tuple[SourceLocation, ...]]
"""A source line, and the callers that it was inlined into."""


def place_of(bound: BoundInstruction) -> Place | None:
    """Where an instruction comes from; None where the PTX does not say."""
    origin = bound.instruction.origin
    return None if origin is None else (origin.where, origin.frames)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a launch counted, by the names that a launch's record has: in all, and of each line that ran."""

    counters: Mapping[str, int]
    lines: Mapping[Place, Mapping[str, int]]


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
    """The counters of one launch, under the names that a launch's record gives them, by the place of instructions."""

    standers: frozenset[int] = frozenset()
    """By identity, the instructions of loops that only look at mbarriers."""
    tallies: dict[Place | None, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    place: Place | None = None
    """Where the instruction is that makes requests."""
    waits: bool = False
    """Whether it is one of `standers`."""
    pairs: dict[str, set[int]] = field(default_factory=lambda: {"load": set(), "store": set()})
    """The 64-byte pairs of sectors that were read and written."""

    def begin(self, bound: BoundInstruction) -> None:
        """The instruction whose requests come next."""
        self.place, self.waits = place_of(bound), id(bound) in self.standers

    def count_instruction(self, bound: BoundInstruction, lanes: int, active: int) -> None:
        """One execution by a warp: `lanes` reach the instruction, `active` of them pass its guard."""
        row, tally = bound.form.row, self.tallies[place_of(bound)]
        tally["instructions.warp"] += 1
        tally["instructions.thread"] += lanes
        tally[f"instructions.pipe.{row.pipe.value}"] += 1
        if row.counts is not None:
            tally[row.counts] += 1
        if id(bound) in self.standers:
            tally["waiting.instructions"] += 1
        if bound.form.flops:
            tally[bound.form.flop_counter] += bound.form.flops * active

    def count_divergence(self, bound: BoundInstruction) -> None:
        """A branch at which lanes part."""
        self.tallies[place_of(bound)]["branches.divergent"] += 1

    def count_request(self, space: Space, kind: str, touches: Sequence[Touch]) -> None:
        """A request of a warp to one space, `touches` of the same size each."""
        if not touches or space.counted_as is None:
            return
        prefix, tally = f"{space.counted_as}.{kind}", self.tallies[self.place]
        tally[f"{prefix}.requests"] += 1
        tally[f"{prefix}.bytes"] += sum(touch.size for touch in touches)
        if space.cost is Cost.SECTORS:
            tally[f"{prefix}.sectors"] += len(find_sectors(touches))
            self._note_pairs(kind, touches)
        if space.cost is Cost.WAVEFRONTS:
            wavefronts, conflicts = find_wavefronts(kind, touches, max(touch.size for touch in touches))
            tally[f"{prefix}.wavefronts"] += wavefronts
            if self.waits and space.counted_as == "shared":
                tally["waiting.wavefronts"] += wavefronts
            tally[f"{prefix}.bank_conflicts"] += conflicts

    def count_block_box(self, kind: str, size: int) -> None:
        """A box in the shared memory of one block."""
        tally = self.tallies[self.place]
        tally[f"tma.{kind}.boxes"] += 1
        tally[f"tma.{kind}.bytes"] += size

    def count_box(self, kind: str, rows: Sequence[Touch]) -> None:
        """A box of a tensor, by what of its rows lies inside: one request for global memory."""
        if not rows:
            return
        tally = self.tallies[self.place]
        sectors = [touch.pieces(SECTOR_BYTES) for touch in rows]
        again = sum(following[0] == before[-1] for before, following in pairwise(sectors))
        tally[f"global.{kind}.requests"] += 1
        tally[f"global.{kind}.bytes"] += sum(touch.size for touch in rows)
        tally[f"global.{kind}.sectors"] += sum(map(len, sectors)) - again
        self._note_pairs(kind, rows)

    def _note_pairs(self, kind: str, touches: Sequence[Touch]) -> None:
        pairs = self.pairs["load" if kind == "load" else "store"]
        pairs.update(
            pair for touch in touches for pair in touch.pieces(PAIR_BYTES) if touch.address < FIRST_HEAP_ADDRESS
        )

    def tell(self) -> Tally:
        """All counters by name."""
        compulsory = {f"global.{kind}.compulsory_bytes": PAIR_BYTES * len(pairs) for kind, pairs in self.pairs.items()}
        lines = {place: tally for place, tally in self.tallies.items() if place and "instructions.warp" in tally}
        return Tally({**sum(self.tallies.values(), Counter[str]()), **compulsory}, lines)
