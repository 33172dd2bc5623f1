"""`nki.isa`: what the GPSIMD engine gathers, searches and sorts."""

from __future__ import annotations

from typing import cast

from triptych.languages.nki.isa_functions.function import declaration
from triptych.languages.nki.isa_functions.operands import Arguments
from triptych.languages.nki.language_functions.elementwise import on_chip
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer

_CORE = 16


@declaration()
def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor) -> None:
    """dst[p, i] = data[p, indices[p, i]], over the free elements of each partition as one row; indices are uint32."""


def _gathered(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new tile of as many elements a partition as a core's indices name."""
    data, index = on_chip(arguments["src_buffer"], "src_buffer"), on_chip(arguments["index"], "index")
    valid = cast("int | None", arguments["num_valid_indices"]) or index.size // index.shape[0] * _CORE
    shape = (data.shape[0], valid, cast("int", arguments["num_elem_per_idx"]))
    return tracer.allocate(shape, data.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)


@declaration(_gathered)
def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
) -> None:
    """dst = what the uint16 indices of 16 partitions name in each of them, num_elem_per_idx elements from each on."""


@declaration()
def nonzero_with_count(dst: NkiTensor, src: NkiTensor, index_offset: int = 0, padding_val: int = -1) -> None:
    """dst = where src is not 0, then padding, then how often, of partitions 0, 16, 32 … alone."""


@declaration()
def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int) -> None:
    """val_dst, idx_dst = the K largest of the n bfloat16 elements of 16 partitions, ascending, and where they stand."""


def _bounds(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    segments = on_chip(arguments["segment_ids"], "segment_ids")
    shape = (1, 2, segments.size // segments.shape[0])
    return tracer.allocate(shape, segments.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)


@declaration(_bounds)
def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor) -> None:
    """dst[1, 2, N] = where the segment of each element begins and, one behind, ends; N and -1 for the id 0."""
