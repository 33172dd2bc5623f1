"""A × B in four tilings, and from A as it lies. A product of matrices is fast where each byte of HBM is used often.

- Tiling: the Tensor engine takes 128 × 128 of A, which stays in it, and 128 × 512 of B, which moves through it;
  products along k add up in a bank of PSUM.
- Memory hierarchy: `matmul_tiled` brings both operands for each product; `matmul_hoisted` keeps a strip of A in SBUF
  for all columns of B; `matmul_blocked` uses each column block of B for several strips of A; `matmul_fully_blocked`
  cuts k too, so that blocks of both and of C may be as large as SBUF allows, with C's sums in f32.
- Mapping: k lies along the partitions of both operands, which is why A comes transposed; `matmul` has the Tensor engine
  transpose A's tiles on their way in, at a cost of 128 / n of the products.
- Overlap: the Tensor engine multiplies one tile while the Vector engine empties another bank and the DMA queues bring
  the next tiles: all that blocking leaves to be done.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN202
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, mirror_into, psum, sbuf, within
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

MOVING = 512
"""Columns of B that the Tensor engine takes at once: a bank of PSUM holds as many sums."""
BLOCK_M, BLOCK_N, BLOCK_K = 16 * PARTITIONS, 2 * MOVING, 8 * PARTITIONS
"""Blocks of the fully blocked product: 64 KiB of sums in each partition."""


def stored(c, rows, columns, sums):
    """A tile of C leaves PSUM (or SBUF) in its dtype, by the Scalar engine: the Vector engine has sums to add."""
    made = sbuf(sums.shape, c.dtype)
    nisa.activation(dst=made, op=nl.copy, data=sums)
    nisa.dma_copy(dst=c[rows, columns], src=made)


def product_of(a_t, b):
    """A new C in HBM, (m, n), for A transposed, (k, m), and B, (k, n)."""
    assert a_t.shape[0] == b.shape[0], f"a_t has {a_t.shape[0]} rows, b {b.shape[0]}; expected as many"
    return nl.ndarray((a_t.shape[1], b.shape[1]), dtype=b.dtype, buffer=nl.shared_hbm)


@nki.jit
def matmul_tiled(a_t, b):
    """A × B by tiles, each brought when it is wanted; A comes transposed, (k, m), B as (k, n)."""
    c = product_of(a_t, b)
    for rows in cuts(c.shape[0], PARTITIONS):
        for columns in cuts(c.shape[1], MOVING):
            sums = psum((length(rows), length(columns)))
            for inner in cuts(b.shape[0], PARTITIONS):
                nisa.nc_matmul(dst=sums, stationary=loaded(a_t[inner, rows]), moving=loaded(b[inner, columns]))
            stored(c, rows, columns, sums)
    return c


@nki.jit
def matmul_hoisted(a_t, b):
    """A × B with a strip of A, 128 columns of `a_t`, in SBUF for a whole row of C's tiles."""
    c, depths = product_of(a_t, b), cuts(b.shape[0], PARTITIONS)
    for rows in cuts(c.shape[0], PARTITIONS):
        strip = [loaded(a_t[inner, rows]) for inner in depths]
        for columns in cuts(c.shape[1], MOVING):
            sums = psum((length(rows), length(columns)))
            for left, inner in zip(strip, depths, strict=True):
                nisa.nc_matmul(dst=sums, stationary=left, moving=loaded(b[inner, columns]))
            stored(c, rows, columns, sums)
    return c


@nki.jit
def matmul_blocked(a_t, b):
    """A × B with columns of B in SBUF for four strips of A, whose tiles they meet there."""
    c, depths = product_of(a_t, b), cuts(b.shape[0], PARTITIONS)
    for block in cuts(c.shape[0], 4 * PARTITIONS):
        strips = [loaded(a_t[inner, block]) for inner in depths]
        for columns in cuts(c.shape[1], MOVING):
            moving = [loaded(b[inner, columns]) for inner in depths]
            for rows in cuts(length(block), PARTITIONS):
                sums = psum((length(rows), length(columns)))
                for left, right in zip(strips, moving, strict=True):
                    nisa.nc_matmul(dst=sums, stationary=left[:, rows], moving=right)
                stored(c, within(block, rows), columns, sums)
    return c


def block_product(c, rows, columns, depth, left_of, right_of):
    """A block of C; `left_of` and `right_of` bring the tiles of a block of k, [k, m] and [k, n], 128 of k each."""
    blocks, totals = cuts(depth, BLOCK_K), {}
    for block in blocks:
        left, right = left_of(block, rows), right_of(block, columns)
        for strip in cuts(length(rows), PARTITIONS):
            for tile in cuts(length(columns), MOVING):
                sums, place = psum((length(strip), length(tile))), (strip.start, tile.start)
                for stationary, moving in zip(left, right, strict=True):
                    nisa.nc_matmul(dst=sums, stationary=stationary[:, strip], moving=moving[:, tile])
                if block.start:  # in f32: C's own dtype would lose digits with every block of k
                    nisa.tensor_tensor(dst=totals[place], data1=totals[place], data2=sums, op=nl.add)
                elif len(blocks) > 1:
                    totals[place] = sbuf(sums.shape)
                    nisa.activation(dst=totals[place], op=nl.copy, data=sums)
                if block.stop == depth:
                    stored(c, within(rows, strip), within(columns, tile), totals.get(place, sums))


def rows_of(matrix):
    """What brings tiles of rows of a matrix in HBM, as `block_product` wants them."""
    return lambda block, columns: [loaded(matrix[within(block, cut), columns]) for cut in cuts_of(block)]


def cuts_of(block):
    """The 128s of a block of k."""
    return cuts(length(block), PARTITIONS)


@nki.jit
def matmul_fully_blocked(a_t, b):
    """A × B by blocks of m, n and k: of HBM, A comes n / BLOCK_N times and B m / BLOCK_M times."""
    c = product_of(a_t, b)
    for columns in cuts(c.shape[1], BLOCK_N):
        for rows in cuts(c.shape[0], BLOCK_M):
            block_product(c, rows, columns, b.shape[0], rows_of(a_t), rows_of(b))
    return c


@nki.jit
def matmul(a, b):
    """A × B, fully blocked, with A of (m, k) as it lies; f32, f16 or bf16, summed up in f32."""
    assert a.shape[1] == b.shape[0], f"a has {a.shape[1]} columns, b {b.shape[0]} rows; expected as many"
    c = nl.ndarray((a.shape[0], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)

    def turned(block, rows):
        made = [sbuf((length(cut), length(rows)), a.dtype) for cut in cuts_of(block)]
        for strip in cuts(length(rows), PARTITIONS):
            tile = loaded(a[within(rows, strip), block])  # rows of 2 KiB in bf16, which DMA likes better than 256 bytes
            for one, cut in zip(made, cuts_of(block), strict=True):
                mirror_into(one[:, strip], tile[:, cut])
        return made

    for columns in cuts(b.shape[1], BLOCK_N):
        for rows in cuts(a.shape[0], BLOCK_M):
            block_product(c, rows, columns, b.shape[0], turned, rows_of(b))
    return c
