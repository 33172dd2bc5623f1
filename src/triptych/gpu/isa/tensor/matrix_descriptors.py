"""Matrices in shared memory as `wgmma` finds them: descriptors, and where rows lie (PTX manual, 9.7.15.5.1.2).

A matrix consists of *pieces* of 8 rows of 16 bytes. By K (`imm-trans` 0) a row is 16 bytes of a line of A, or of a
column of B, and a piece has 8 lines; otherwise a row has 8 lines' elements of 16 bits at one k, and a piece 8 k. Rows
of a piece are 16, 32, 64 or 128 bytes apart, by the swizzle mode, which is also how many bytes chunks of 16 are
exchanged within. Descriptors say how far pieces lie apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, Protocol, Self, TypeVar

from triptych.gpu.isa.tensor.fragments import LINES, Product
from triptych.gpu.tensor_map import CHUNK_BYTES, SWIZZLE_SHIFT

ROWS = 8
"""Of a piece."""
PIECES_ALONG = 2
"""Pieces that the K of an instruction has: 32 bytes, or 16 elements of 16 bits."""
GROUP_WARPS = 4
"""Warps of a warpgroup, whose first one has a number that is a multiple of it (PTX manual, 9.7.15.1)."""
MOST_REGISTERS = 128
"""Of a lane, that hold D."""
_FIELD, _FIELD_SHIFT = 0x3FFF, 4
"""A field's bits, and what it lacks of a number of bytes."""


class DescriptorFault(IntEnum):
    """Why matrices cannot be multiplied as descriptors say."""

    LANES = 1
    """The lanes of a warp give different ones, or different predicates."""
    GROUP = 2
    """The block has no four warps for the warpgroup."""


class Number(Protocol):
    """An integer as a machine has it: one that is known, or one that code works out."""

    def __add__(self, other: Self | int, /) -> Self:
        """The sum."""
        ...

    def __mul__(self, other: Self | int, /) -> Self:
        """The product."""
        ...

    def __and__(self, other: Self | int, /) -> Self:
        """The bits of both."""
        ...

    def __xor__(self, other: Self | int, /) -> Self:
        """The bits of one of them."""
        ...

    def __lshift__(self, other: Self | int, /) -> Self:
        """Times a power of two."""
        ...

    def __rshift__(self, other: Self | int, /) -> Self:
        """Over a power of two, as a number without sign."""
        ...

    def __rlshift__(self, other: int, /) -> Self:
        """A known number, times a power of two."""
        ...


N = TypeVar("N", bound=Number)


@dataclass(frozen=True, slots=True)
class MatrixDescriptor(Generic[N]):
    """A descriptor taken apart; distances are bytes."""

    start: N
    leading: N
    """The leading dimension's byte offset."""
    stride: N
    """The stride dimension's byte offset."""
    base_offset: N
    """By how many 128 bytes the patterns of swizzling begin behind a multiple of theirs (as an H200 has it:
    `tests/hardware/test_descriptors.py`)."""
    bits: N
    """How many bits of an address swizzling changes."""
    mask: N
    """As many ones."""
    swizzled: N
    """1 where rows are swizzled, else 0."""

    def _by_mode(self, swizzled: N | int, plain: N) -> N:
        return self.swizzled * swizzled + (self.swizzled ^ 1) * plain

    def piece(self, line: N, along: N, *, by_k: bool) -> N:
        """Bytes from the start to a piece: the `line`-th of its lines by eight, the `along`-th of K."""
        if by_k:
            return line * self.stride + along * self._by_mode(CHUNK_BYTES, self.leading)
        across, onwards = self._by_mode(self.leading, self.stride), self._by_mode(self.stride, self.leading)
        return (line & self.mask) * CHUNK_BYTES + (line >> self.bits) * across + along * onwards

    def row(self, piece: N, row: N) -> N:
        """The address of a row of the piece that begins so many bytes behind the start."""
        plain = self.start + piece + ((row * CHUNK_BYTES) << self.bits)
        # From the number of the row in its pattern, of eight, the base offset is taken off: -b is 7b modulo 8.
        place = (plain >> SWIZZLE_SHIFT) + self.base_offset * 7
        return plain ^ ((place & self.mask) * CHUNK_BYTES)


def read_descriptor(bits: N) -> MatrixDescriptor[N]:
    """The fields of the 64 bits."""
    start, leading, stride = ((bits >> shift & _FIELD) << _FIELD_SHIFT for shift in (0, 16, 32))
    mode = bits >> 62 & 3  # 128, 64 and 32 bytes are 1, 2 and 3
    changed = mode * 3 & 3
    return MatrixDescriptor(start, leading, stride, bits >> 49 & 7, changed, 7 << changed >> 3, (changed + 3) >> 2)


@dataclass(frozen=True, slots=True)
class GroupProduct:
    """D = A × B + D as one instruction of a warpgroup does it: all that its code depends on."""

    warp: Product
    """What each of the four warps does, with 16 rows of A and D."""
    a_in_registers: bool
    negated: bool = False
    """Whether the products change their signs."""
    by_k: tuple[bool, bool] = (True, True)
    """Whether A, and B, lie in shared memory line by line of K."""

    @property
    def name(self) -> str:
        """Names all that its code depends on."""
        flags = (self.a_in_registers, self.negated, *self.by_k)
        return f"{self.warp.name}.{''.join('01'[flag] for flag in flags)}"

    @property
    def line_pieces(self) -> int:
        """Pieces of a warp's part of A, one below the other."""
        return self.warp.a.lines // LINES

    @property
    def a_bytes(self) -> int:
        """What a warp reads of A."""
        return 0 if self.a_in_registers else self.warp.a.lines * PIECES_ALONG * CHUNK_BYTES

    @property
    def b_bytes(self) -> int:
        """A warp's share of what the warpgroup reads of B, all of which each warp multiplies by."""
        return self.warp.b.lines * PIECES_ALONG * CHUNK_BYTES // GROUP_WARPS
