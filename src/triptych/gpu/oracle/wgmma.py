"""A warp's part of `wgmma`, the plain way: matrices read row by row of their pieces, then multiplied as by one warp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triptych.core.errors import WarpgroupMisuse
from triptych.gpu.isa.spaces import SHARED, TENSOR_SHARED
from triptych.gpu.isa.tensor.fragments import LINES, Fragment
from triptych.gpu.isa.tensor.matrix_descriptors import (
    GROUP_WARPS,
    PIECES_ALONG,
    ROWS,
    DescriptorFault,
    GroupProduct,
    read_descriptor,
)
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.oracle.counting import Touch
from triptych.gpu.oracle.memory import Bytes, WarpMemory
from triptych.gpu.oracle.tensor import ARITHMETICS, matrix_of, registers_of
from triptych.gpu.oracle.values import Lanes, unsigned
from triptych.gpu.tensor_map import CHUNK_BYTES


def multiply_group(
    memory: WarpMemory, product: GroupProduct, warp: tuple[int, int],
    operands: tuple[Sequence[Lanes], Sequence[Lanes], Lanes, Lanes],
) -> list[Lanes]:  # fmt: skip
    """The registers of D, from those of C, of A or its descriptor, B's descriptor and whether C counts.

    Raises:
        WarpgroupMisuse: lanes disagree, warps are missing, or a descriptor says what it cannot.
        MemoryFault: a matrix lies outside of shared memory.
    """
    number, warps = warp
    sums, a, b, keeps = operands
    if number | (GROUP_WARPS - 1) >= warps:
        raise _misuse(memory, DescriptorFault.GROUP)
    if keeps.any() != keeps.all():
        raise _misuse(memory, DescriptorFault.LANES)
    parts = product.warp
    if product.a_in_registers:
        left = matrix_of(parts.a, a)
    else:
        first = number % GROUP_WARPS * product.line_pieces
        left = _read(memory, parts.a, a[0], first, by_k=product.by_k[0])
    right = _read(memory, parts.b, b, 0, by_k=product.by_k[1])
    if product.negated:
        left ^= np.uint64(1 << (parts.a.element.bits - 1))
    read = [product.b_bytes] if product.a_in_registers else [product.a_bytes, product.b_bytes]
    for size in read:
        memory.counts.count_request(TENSOR_SHARED, "load", [Touch(0, 0, size)])
    before = matrix_of(parts.c, sums) if keeps.all() else np.zeros((parts.c.lines, parts.c.length), np.uint64)
    return registers_of(parts.d, ARITHMETICS[parts.numerics](parts, left, right, before))


def _misuse(memory: WarpMemory, fault: DescriptorFault) -> WarpgroupMisuse:
    return WarpgroupMisuse(f"{memory.doing}: {fault.name}", where=memory.where)


def _read(memory: WarpMemory, fragment: Fragment, descriptors: Lanes, first: int, *, by_k: bool) -> Lanes:
    """The bits of a matrix, line by line, from its `first` piece on."""
    if len(set(descriptors.tolist())) > 1:
        raise _misuse(memory, DescriptorFault.LANES)
    layout = read_descriptor(int(descriptors[0]))
    matrix = np.zeros((fragment.lines, fragment.length), np.uint64)
    for band in range(fragment.bands):
        for along in range(PIECES_ALONG):
            piece = layout.piece(first + band, along, by_k=by_k)
            for row in range(ROWS):
                _, data = memory.reach(SHARED, "load", 0, layout.row(piece, row), CHUNK_BYTES, CHUNK_BYTES)
                elements = _elements(data, fragment.element)
                if by_k:
                    matrix[LINES * band + row, elements.size * along : elements.size * (along + 1)] = elements
                else:
                    matrix[LINES * band : LINES * (band + 1), ROWS * along + row] = elements
    return matrix


def _elements(data: Bytes, element: ScalarType) -> Lanes:
    """The elements of 16 bytes, by their bits."""
    return np.unpackbits(data, bitorder="little") if element.bits == 1 else data.view(unsigned(element.bits))
