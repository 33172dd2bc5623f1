"""How kernels cut tensors into what an engine takes at once; plain functions, which a trace has no trace of.

To copy a kernel out of this folder, take the functions it uses along, and import `nki`, `nki.language as nl` and
`nki.isa as nisa` in place of triptych's modules.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN003, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl

PARTITIONS = 128
"""Rows of SBUF, and lanes of the Vector, Scalar and GPSIMD engines."""
COLUMNS = 2048
"""Elements of a row of SBUF that elementwise kernels take at once: 4 KiB or more a partition fill a DMA's queues."""


def cuts(extent, size):
    """Slices of an axis of `extent` elements, `size` each but for the last."""
    return [slice(start, min(start + size, extent)) for start in range(0, extent, size)]


def length(cut):
    """How many elements a slice has."""
    return cut.stop - cut.start


def within(outer, inner):
    """A slice of a slice, on the axis of the outer one."""
    return slice(outer.start + inner.start, outer.start + inner.stop)


def parts(tensor):
    """Views [partitions, columns] that have all elements of a tensor in HBM, the last one perhaps of one partition.

    A partition's elements are neighbours, so that each has one run of HBM to itself.
    """
    size = tensor.size
    flat, columns = tensor.reshape((size,)), size // PARTITIONS
    found = []
    if columns:
        body = flat[0 : columns * PARTITIONS].reshape((PARTITIONS, columns))
        found = [body[:, cut] for cut in cuts(columns, COLUMNS)]
    if size % PARTITIONS:
        found.append(flat[columns * PARTITIONS : size].reshape((1, size % PARTITIONS)))
    return found


def expect_alike(**tensors):
    """Tensors that are worked on element by element have one shape and dtype."""
    kinds = {(one.shape, one.dtype) for one in tensors.values()}
    named = ", ".join(f"{name} {one.dtype}{list(one.shape)}" for name, one in tensors.items())
    assert len(kinds) == 1, f"got {named}; expected one shape and dtype"


def sbuf(shape, dtype=nl.float32):
    """A new tile in SBUF, of undefined contents."""
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def loaded(source):
    """A new tile in SBUF with the elements of a view of HBM."""
    tile = sbuf(source.shape, source.dtype)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def psum(shape, dtype=nl.float32):
    """A new tile in PSUM, where the Tensor engine's results go and sums over products add up."""
    return nl.ndarray(shape, dtype=dtype, buffer=nl.psum)


def mirror_into(target, tile):
    """Target = the mirror of a tile of up to 128 × 128 in SBUF: by the Tensor engine into PSUM, and out again."""
    turned = psum((tile.shape[1], tile.shape[0]), tile.dtype)
    nisa.nc_transpose(dst=turned, data=tile)
    nisa.tensor_copy(dst=target, src=turned)


def mirrored(tile):
    """The mirror of a tile of up to 128 × 128, in a new one."""
    made = sbuf((tile.shape[1], tile.shape[0]), tile.dtype)
    mirror_into(made, tile)
    return made
