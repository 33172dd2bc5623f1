"""The access patterns whose counters are recorded on a GPU: 32 byte offsets, a size, a mask, load or store, a space."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random

KINDS = ("shared_load", "shared_store", "global_load", "global_store")
SIZES = (1, 2, 4, 8, 16)
FULL = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one warp does: lane i reaches for `size` bytes at `offsets[i]` if bit i of `mask` is set."""

    name: str
    kind: str
    size: int
    mask: int
    offsets: tuple[int, ...]

    def packed(self) -> bytes:
        """As the host program reads it."""
        return struct.pack("<iiI32I", KINDS.index(self.kind), self.size, self.mask, *self.offsets)

    def as_json(self) -> dict[str, object]:
        """For the record."""
        return asdict(self)


def _shapes(size: int, random: Random) -> Iterator[tuple[str, int, list[int]]]:
    lanes = range(32)
    for stride in (0, 1, 2, 3, 4, 8, 16, 17, 32, 33):
        yield f"stride {stride}", FULL, [i * stride * size for i in lanes]
    yield "reversed", FULL, [(31 - i) * size for i in lanes]
    yield "pairs", FULL, [i // 2 * size for i in lanes]
    yield "folded halves", FULL, [i % 16 * size for i in lanes]
    yield "folded quarters", FULL, [i % 8 * size for i in lanes]
    yield "halves 512 bytes apart", FULL, [i % 16 * size + i // 16 * 512 for i in lanes]
    yield "halves swapped", FULL, [(i ^ 16) * size for i in lanes]
    yield "one element on", FULL, [(i + 1) * size for i in lanes]
    yield "butterfly", FULL, [(i ^ 5) * size for i in lanes]
    for mask in (0x0000_00FF, 0x0F0F_0F0F, 0x5555_5555, 0x8000_0001, 0x0000_0001):
        yield f"mask {mask:08x}", mask, [i * size for i in lanes]
        yield f"mask {mask:08x} stride 32", mask, [i * 32 * size for i in lanes]
    for seed in range(8):
        span = 32 << (seed % 4)
        yield f"random {seed} of {span}", FULL, [random.randrange(span) * size for _ in lanes]
    for seed in range(2):
        yield f"random mask {seed}", random.getrandbits(32) | 1, [random.randrange(256) * size for _ in lanes]


def patterns() -> list[Pattern]:
    """All patterns, the same in every run."""
    random = Random(20261129)
    found: list[Pattern] = []
    for kind in KINDS:
        for size in SIZES:
            for name, mask, offsets in _shapes(size, random):
                found.append(Pattern(name, kind, size, mask, tuple(offsets)))
    return found
