"""`nki.language`: random numbers, of the Vector engine's generators."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki.language_functions.elementwise import is_number, number, on_chip, result_tile
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.buffers import Buffer
from triptych.languages.nki.tracing.dtypes import float32, nki_dtype, uint32
from triptych.languages.nki.tracing.indexing import refuse, whole_numbers
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current

_BITS = 24


def rand(shape: Sequence[int], dtype: object = float32, buffer: Buffer = buffers.sbuf, name: str = "") -> NkiTensor:
    """A new tile of numbers that are uniform in [0, 1), each of 24 random bits."""
    tracer = current("nl.rand")
    counts = whole_numbers(shape, "nl.rand: the shape")
    if not buffer.space.on_chip:
        raise refuse(f"nl.rand: buffer={buffer!r}; random numbers are made on chip", "store them: nl.store")
    bits = tracer.allocate(counts, uint32, buffers.sbuf)
    tracer.emit("rng", {"dst": bits})
    high = tracer.allocate(counts, uint32, buffers.sbuf)
    tracer.emit("tensor_scalar", {"dst": high, "data": bits, "operand0": 32 - _BITS}, {"op0": "right_shift"})
    target = tracer.allocate(counts, nki_dtype(dtype), buffer, name)
    tracer.emit("tensor_scalar", {"dst": target, "data": high, "operand0": 2.0**-_BITS}, {"op0": "multiply"})
    return target


def random_seed(seed: object, *, mask: object = None) -> None:
    """Seeds the generators: with a tile [1, 1] of 32 bits or, under Beta 1, a number."""
    tracer = current("nl.random_seed")
    if mask is not None:
        raise refuse("nl.random_seed takes no mask here")
    if is_number(seed):
        tracer.note_legacy("nl.random_seed of a number")
        tile = tracer.allocate((1, 1), uint32, buffers.sbuf)
        tracer.emit("memset", {"dst": tile, "value": float(int(number(seed)) & 0xFFFFFFFF)})
        seed = tile
    tracer.emit("set_rng_seed", {"src_seeds": on_chip(seed, "nl.random_seed")})


def dropout(x: object, rate: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """X, of which each element becomes 0 with the probability `rate`, a number or a tile [P, 1]."""
    tracer = current("nl.dropout")
    data = on_chip(x, "nl.dropout")
    kept = result_tile(tracer, data.shape, None, data.dtype)
    part = number(rate) if is_number(rate) else on_chip(rate, "nl.dropout")
    tracer.emit("dropout", {"dst": kept, "data": data, "prob": part}, mask=mask)
    if dtype is None or nki_dtype(dtype) == data.dtype:
        return kept
    target = result_tile(tracer, data.shape, dtype, data.dtype)
    tracer.emit("tensor_copy", {"dst": target, "src": kept}, mask=mask)
    return target
