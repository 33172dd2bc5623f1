"""Copies of boxes of tensors the plain way: every row listed, every element outside of the tensor filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from triptych.core.errors import TensorMapMisuse
from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.spaces import ASYNCHRONOUS, GLOBAL, SHARED
from triptych.gpu.isa.types import F32, TYPES, ScalarType
from triptych.gpu.oracle.atomics import updated
from triptych.gpu.oracle.counting import Touch
from triptych.gpu.oracle.memory import Bytes, WarpMemory
from triptych.gpu.oracle.values import unsigned
from triptych.gpu.tensor_map import (
    ALIGNMENT,
    BYTES,
    CHUNK_BYTES,
    COLUMNS,
    ELEMENT_TYPES,
    FIELDS,
    FILLS,
    LIMITS,
    LOWER,
    MOST_BOX_BYTES,
    SHARED_ALIGNMENT,
    SINGLE_NAN,
    SWIZZLE_SHIFT,
    SWIZZLE_SPANS,
    TF32_NAN,
    TILES,
    UPPER,
    TensorCopy,
    TensorMapFault,
    corner_in,
    name_of,
    number_in,
)

Positions = tuple[int, ...]
"""Of a row, along the axes from the second on."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one lane asks for."""

    copy: TensorCopy
    lane: int
    tensor_map: int
    coordinates: tuple[int, ...]
    shared: int
    offsets: tuple[int, ...]
    blocks: int

    def places(self, address: int) -> list[int]:
        """Where an address of shared memory is meant, block by block."""
        if not self.copy.multicast:
            return [address]
        ranks = (rank for rank in range(32) if self.blocks >> rank & 1)
        return [address % (1 << RANK_SHIFT) | rank + 1 << RANK_SHIFT for rank in ranks]


class BoxCopy:
    """One lane's copy."""

    def __init__(self, memory: WarpMemory, request: Request) -> None:
        """Reads the tensor map.

        Raises:
            MemoryFault: there is no memory where it should be.
            TensorMapMisuse: it is none, or does not fit the copy.
        """
        self.memory, self.request, self.copy = memory, request, request.copy
        _, data = memory.reach(GLOBAL, "load", request.lane, request.tensor_map, BYTES, ALIGNMENT)
        self.data = data.tobytes()
        self._check()
        self.type = ELEMENT_TYPES[self.number("elemtype")]
        self.shape = [self.number("global_dim", axis) for axis in range(self.copy.rank)]
        self.row_bytes = self.number("box_dim") * self.type.bytes
        self.pitch = SWIZZLE_SPANS[self.number("swizzle_mode")] or self.row_bytes
        self.rows = list(self._columns() if self.copy.columns else self._tiles())
        x = request.coordinates[0]
        first, stop = (min(max(bound, 0), self.number("box_dim")) for bound in (-x, self.shape[0] - x))
        chunk = CHUNK_BYTES // self.type.bytes if self.copy.operation != "load" else 1
        self.inside = slice(first, -(-stop // chunk) * chunk)

    @property
    def kind(self) -> str:
        """What it does in global memory."""
        return self.copy.operation if self.copy.operation in ("load", "store") else "atomic"

    @property
    def box_bytes(self) -> int:
        """Bytes of the box."""
        return len(self.rows) * self.row_bytes

    def number(self, name: str, index: int = 0) -> int:
        """A number of the map."""
        return number_in(self.data, FIELDS[name], index)

    # The map ----------------------------------------------------------------------------------------------------

    def _require(self, holds: bool, fault: TensorMapFault, what: str) -> None:
        if not holds:
            by = f"by lane {self.request.lane}, tensor map at {self.request.tensor_map:#x}"
            raise TensorMapMisuse(f"{self.memory.doing}: {fault.name}, {what}, {by}", where=self.memory.where)

    def _check(self) -> None:
        copy, mark = self.copy, self.number("mark")
        known = mark in (TILES, COLUMNS) or (mark == 0 and self.number("global_address") != 0)
        self._require(known, TensorMapFault.NO_MAP, f"mark {mark:#x}")
        self._require((mark == COLUMNS) == copy.columns, TensorMapFault.MODE, "the other mode")
        self._require(self.number("rank") + 1 == copy.rank, TensorMapFault.RANK, f"{self.number('rank') + 1} axes")
        for limit in LIMITS:
            value = self.number(limit.field, limit.index)
            concerned = copy.rank >= limit.axes and limit.columns in (None, copy.columns)
            fits = limit.least <= value <= limit.most and value % limit.multiple == 0
            what = f"{name_of(limit.field, limit.index)} is {value}"
            self._require(fits or not concerned, TensorMapFault.FIRST_LIMIT, what)
        one, x = ELEMENT_TYPES[self.number("elemtype")], self.request.coordinates
        self._require(one.is_float or not self.number("fill_mode"), TensorMapFault.FILL, one.name)
        known = copy.operation in ("load", "store") or copy.operation in one.reductions
        self._require(known, TensorMapFault.OPERATION, one.name)
        row, span = self.number("box_dim") * one.bytes, SWIZZLE_SPANS[self.number("swizzle_mode")]
        self._require(row % CHUNK_BYTES == 0, TensorMapFault.ROW_BYTES, f"{row} bytes")
        self._require(not span or row <= span, TensorMapFault.SPAN, f"{row} bytes")
        self._require(x[0] * one.bytes % CHUNK_BYTES == 0, TensorMapFault.PLACE, f"coordinate {x[0]}")
        bounds = [self._bounds(axis) for axis in range(1, copy.rank - 1)] if copy.columns else []
        for place, (low, high) in zip(x[1:], bounds, strict=False):
            self._require(low <= place <= high, TensorMapFault.OUTSIDE, f"coordinate {place}")
        if copy.operation != "load":
            least = min(*x, 0, *(low for low, _ in bounds))
            self._require(least >= 0, TensorMapFault.NEGATIVE, f"coordinate {least}")
        rows = self.number("box_dim", 1) if copy.columns else prod(map(self._count, range(1, copy.rank)))
        self._require(rows * row <= MOST_BOX_BYTES, TensorMapFault.BOX_BYTES, f"{rows * row} bytes")

    def _count(self, axis: int) -> int:
        return -(-self.number("box_dim", axis) // self.number("element_stride", axis))

    def _bounds(self, axis: int) -> tuple[int, int]:
        """The first and the last position of the bounding box of columns along an axis."""
        last = self.number("global_dim", axis) - 1
        return corner_in(self.data, LOWER, axis - 1), last + corner_in(self.data, UPPER, axis - 1)

    # Rows -------------------------------------------------------------------------------------------------------

    def _tiles(self) -> Iterator[Positions]:
        x, rank = self.request.coordinates, self.copy.rank
        along = [[x[a] + i * self.number("element_stride", a) for i in range(self._count(a))] for a in range(1, rank)]
        return (positions[::-1] for positions in product(*reversed(along)))

    def _columns(self) -> Iterator[Positions]:
        """Pixel by pixel of the bounding box, from the coordinates on; then of the next image."""
        at = list(self.request.coordinates[1:])
        offsets = [*self.request.offsets, *[0] * (len(at) - len(self.request.offsets))]
        for _ in range(self.number("box_dim", 1)):
            yield tuple(place + offset for place, offset in zip(at, offsets, strict=True))
            for axis in range(1, self.copy.rank):
                at[axis - 1] += self.number("element_stride", axis)
                if axis == self.copy.rank - 1:
                    break
                low, high = self._bounds(axis)
                if at[axis - 1] <= high:
                    break
                at[axis - 1] = low

    def _touch_of(self, positions: Positions) -> Touch | None:
        """What of the tensor's memory lies inside of a row."""
        extents = zip(positions, self.shape[1:], strict=True)
        elements = self.inside.stop - self.inside.start
        if elements <= 0 or not all(0 <= place < extent for place, extent in extents):
            return None
        strides = [self.number("global_stride", axis) for axis in range(len(positions))]
        start = (self.request.coordinates[0] + self.inside.start) * self.type.bytes
        start += sum(place * stride for place, stride in zip(positions, strides, strict=True))
        return Touch(self.request.lane, self.number("global_address") + start, elements * self.type.bytes)

    # Bytes ------------------------------------------------------------------------------------------------------

    def perform(self) -> None:
        """Copies."""
        kind = self.kind
        touches = [self._touch_of(positions) for positions in self.rows]
        pieces = [touch and self._reach(kind, touch) for touch in touches]
        self.memory.counts.count_box(kind, [touch for touch in touches if touch is not None])
        for place in self.request.places(self.request.shared):
            self._move(place, pieces)

    def _reach(self, kind: str, touch: Touch) -> Bytes:
        return self.memory.reach(GLOBAL, kind, touch.lane, touch.address, touch.size, 1)[1]

    def _move(self, place: int, pieces: Sequence[Bytes | None]) -> None:
        loads, lane = self.copy.operation == "load", self.request.lane
        kind = "store" if loads else "load"
        space = ASYNCHRONOUS if loads else SHARED
        _, image = self.memory.reach(space, kind, lane, place, len(self.rows) * self.pitch, SHARED_ALIGNMENT)
        self.memory.counts.count_request(ASYNCHRONOUS, kind, [Touch(lane, place, self.box_bytes)])
        self.memory.counts.count_block_box(self.kind, self.box_bytes)
        inside = slice(self.inside.start * self.type.bytes, self.inside.stop * self.type.bytes)
        for number, piece in enumerate(pieces):
            chunks = self._chunks(place % (1 << RANK_SHIFT), number)
            if loads:
                row = np.resize(np.frombuffer(FILLS[self.number("fill_mode")], np.uint8), self.row_bytes)
                if piece is not None:
                    row[inside] = self._converted(piece)
                image[chunks] = row
            elif piece is not None:
                self._write(piece, image[chunks][inside])

    def _chunks(self, start: int, number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Where the bytes of a row lie in the image of the box."""
        address = start + number * self.pitch + np.arange(self.row_bytes)
        bits = (1 << self.number("swizzle_mode")) - 1
        return (address ^ (address >> SWIZZLE_SHIFT & bits) * CHUNK_BYTES) - start

    def _converted(self, piece: Bytes) -> Bytes:
        if not self.type.rounds_to_tf32:
            return piece
        words = [_tf32(word) for word in piece.copy().view(np.uint32).tolist()]
        return np.array(words, np.uint32).view(np.uint8)

    def _write(self, piece: Bytes, row: Bytes) -> None:
        if self.copy.operation == "store":
            piece[:] = row
            return
        t = TYPES[self.type.number if self.type.is_float else self.type.name]
        elements, operands = piece.view(unsigned(t.bits)), row.copy().view(unsigned(t.bits))
        for index, (old, b) in enumerate(zip(elements.tolist(), operands.tolist(), strict=True)):
            elements[index] = self._updated(t, old, b)

    def _updated(self, t: ScalarType, old: int, b: int) -> int:
        """What becomes of an element."""
        if t is not F32:
            return updated(t, self.copy.operation, old, [b], GLOBAL)
        new = updated(t, self.copy.operation, old, [b], GLOBAL if self.type.flushes else SHARED)
        return SINGLE_NAN if new & SINGLE_NAN > 0x7F80_0000 else new


def _tf32(bits: int) -> int:
    """A single's bits to the nearest with 10 digits, ties to even."""
    if bits & 0x7FFF_FFFF > 0x7F80_0000:
        return TF32_NAN
    low, kept = bits % (1 << 13), bits >> 13
    half = 1 << 12
    up = low > half or (low == half and kept & 1)
    return kept + up << 13


Complete = Callable[[int, int, int], None]
"""(lane, address of an mbarrier, transactions that are complete)."""


def perform(memory: WarpMemory, request: Request, barrier: int | None, complete: Complete) -> None:
    """Performs a copy, and tells the mbarriers."""
    box = BoxCopy(memory, request)
    box.perform()
    if barrier is not None:
        for place in request.places(barrier):
            complete(request.lane, place, box.box_bytes)
