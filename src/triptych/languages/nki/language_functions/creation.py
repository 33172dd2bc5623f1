"""`nki.language`: new tensors, loops, the place in the grid, and the sizes of the hardware."""

from __future__ import annotations

from typing import cast

import numpy as np

from triptych.chips import DEFAULT_BY_MACHINE
from triptych.languages.nki.language_functions.elementwise import is_number, number
from triptych.languages.nki.language_functions.renaming import also_called
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.buffers import Buffer
from triptych.languages.nki.tracing.declarations import ParDim
from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.indexing import Ds, Grid, mgrid, refuse, sequence, whole, whole_numbers
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, current
from triptych.neuron.isa import Space, hardware
from triptych.neuron.isa.trace import BETA1


def _buffer(buffer: object) -> Buffer:
    if buffer is None:
        return buffers.sbuf
    if not isinstance(buffer, Buffer):
        raise refuse(f"buffer={buffer!r} is no memory", "memories are nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm")
    return buffer


_INT = {int}


def _shape(shape: object) -> tuple[int, ...]:
    if type(shape) is tuple:
        known = cast("tuple[int, ...]", shape)
        if not known or set(map(type, known)) == _INT:
            return known
    counts = sequence(cast("object", shape))
    for count in counts:
        if type(count) is not int and whole(count) is None:
            raise refuse(f"shape {counts}: {count!r} is no whole number")
    return tuple(cast("list[int]", counts))  # a ParDim stays one


def ndarray(
    shape: object, dtype: object, buffer: object = None, name: str = "", *, address: object = None
) -> NkiTensor:
    """A new tensor with undefined contents; in SBUF where no buffer is named.

    `address=(partition, byte)` places a tile in SBUF or PSUM; two that are in use must not share bytes.
    """
    tracer = current("nl.ndarray")
    place = None
    if address is not None:
        numbers = whole_numbers(address, "nl.ndarray: address")
        if len(numbers) != 2:
            raise refuse(f"nl.ndarray: address={address!r}; expected (partition, byte)")
        place = (numbers[0], numbers[1])
    made = tracer.allocate(_shape(shape), nki_dtype(dtype), _buffer(buffer), name, address=place)
    tracer.declared_ids.add(made.elements.tensor)
    return made


def full(shape: object, fill_value: object, dtype: object, buffer: object = None, name: str = "") -> NkiTensor:
    """A new on-chip tensor filled with a number."""
    tracer = current("nl.full")
    if not is_number(fill_value):
        raise refuse(f"nl.full: fill_value={fill_value!r} is no number")
    return _filled(tracer, _shape(shape), number(fill_value), dtype, _buffer(buffer), name)


def zeros(
    shape: object, dtype: object, buffer: object = None, name: str = "", *, lazy_initialization: bool = False
) -> NkiTensor:
    """A new on-chip tensor of zeros. In PSUM, under Beta 1, it begins an accumulation of matmuls, at no cost.

    `lazy_initialization`, of Beta 1's compiler, asks for just that: what is added first replaces the zeros.
    """
    if lazy_initialization and current("nl.zeros").generation != BETA1:
        raise refuse("nl.zeros: lazy_initialization= is Beta 1's", "drop it: the first matmul onto PSUM replaces")
    return _filled(current("nl.zeros"), _shape(shape), 0.0, dtype, _buffer(buffer), name)


def ones(shape: object, dtype: object, buffer: object = None, name: str = "") -> NkiTensor:
    """A new on-chip tensor of ones."""
    return _filled(current("nl.ones"), _shape(shape), 1.0, dtype, _buffer(buffer), name)


def _filled(
    tracer: Tracer, shape: tuple[int, ...], value: float, dtype: object, buffer: Buffer, name: str
) -> NkiTensor:
    if not buffer.space.on_chip:
        raise refuse(
            f"a tensor in {buffer.name} cannot be created with a value", "fill a tile in SBUF and store it: nl.store"
        )
    zeroed = value == 0 and buffer.space is Space.PSUM and tracer.generation == BETA1
    target = tracer.allocate(shape, nki_dtype(dtype), buffer, name, zeroed=zeroed)
    if not zeroed:
        for block in np.ndindex(target.shape[: target.elements.partition_axis]):  # each lives while it is used
            tracer.emit("memset", {"dst": target[block] if block else target, "value": value})
    return target


@also_called(a="x")
def zeros_like(x: NkiTensor, dtype: object = None, buffer: object = None, name: str = "") -> NkiTensor:
    """Zeros of the shape of another tensor."""
    return zeros(x.shape, x.dtype if dtype is None else dtype, buffer, name)


@also_called(a="x")
def empty_like(x: NkiTensor, dtype: object = None, buffer: object = None, name: str = "") -> NkiTensor:
    """A tensor of undefined contents with the shape of another."""
    return ndarray(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def par_dim(count: int) -> ParDim:
    """Marks the partition axis of a shape: `(4, nl.par_dim(128), 512)` has four blocks."""
    current("nl.par_dim").note_legacy("nl.par_dim")
    return ParDim(count)


def ds(start: object, size: int) -> Ds:
    """The slice start:start+size; its start may be a register, or a tile of one integer."""
    if isinstance(start, VirtualRegister | NkiTensor):
        (count,) = whole_numbers((size,), "nl.ds: the size")
        return Ds(start, count)
    first, count = whole_numbers((start, size), "nl.ds")
    return Ds(first, count)


# The tile sizes below are the same on every target, so that modules can read them outside of kernels.
_ANY = hardware(DEFAULT_BY_MACHINE["neuron"])


class TileSize:
    """`nl.tile_size`: the largest tiles that the hardware takes. Elements, except where the name says bytes."""

    pmax = _ANY.partitions
    psum_bank_fmax_bytes = _ANY.psum_bank_bytes
    psum_fmax = psum_bank_fmax = psum_bank_fmax_bytes // 4
    psum_num_banks = _ANY.psum_banks
    psum_min_align = 4
    sbuf_min_align = 1
    gemm_stationary_fmax = _ANY.matmul_stationary_elements
    gemm_moving_fmax = _ANY.matmul_moving_elements["f32"]
    bn_stats_fmax = _ANY.batch_statistics_elements

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of a partition of SBUF that a kernel can use."""
        return current("nl.tile_size").hardware.sbuf_bytes_per_partition

    @property
    def sbuf_fmax(self) -> int:
        """float32 elements of a partition of SBUF that a kernel can use."""
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of SBUF that a kernel can use."""
        return self.sbuf_fmax_bytes * self.pmax

    @property
    def total_available_sbuf_size(self) -> int:
        """Bytes of a partition of SBUF that a kernel can use; the older name."""
        return self.sbuf_fmax_bytes


tile_size = TileSize()


def gemm_grid() -> Grid:
    """Beta 1: the index tiles of the largest moving operand of a product, and of its result."""
    current("nl.gemm_grid").note_legacy("nl.gemm_grid")
    return mgrid[0 : TileSize.pmax, 0 : TileSize.gemm_moving_fmax]


def gemm_stationary_grid() -> Grid:
    """Beta 1: the index tiles of the largest stationary operand of a product."""
    current("nl.gemm_stationary_grid").note_legacy("nl.gemm_stationary_grid")
    return mgrid[0 : TileSize.pmax, 0 : TileSize.gemm_stationary_fmax]


def is_sbuf(buffer: Buffer) -> bool:
    """Whether a memory is SBUF."""
    return buffer.space is Space.SBUF


def is_psum(buffer: Buffer) -> bool:
    """Whether a memory is PSUM."""
    return buffer.space is Space.PSUM


def is_hbm(buffer: Buffer) -> bool:
    """Whether a memory is HBM, shared or not."""
    return buffer.space is Space.HBM


def is_on_chip(buffer: Buffer) -> bool:
    """Whether a memory is SBUF or PSUM."""
    return buffer.space.on_chip
