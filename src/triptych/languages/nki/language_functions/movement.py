"""`nki.language`: movement between memories, transposition, multiplication of matrices, and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from triptych.languages.nki.language_functions.elementwise import (
    is_number,
    number,
    on_chip,
    repeat_partition,
    result_tile,
)
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import float32, nki_dtype
from triptych.languages.nki.tracing.indexing import ARRAYS, refuse
from triptych.languages.nki.tracing.tensor_views import TensorViews
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import BETA1, Tracer, current
from triptych.neuron.isa import Space

_VECTOR_TRANSPOSE = 32


def _in_hbm(value: object, what: str) -> NkiTensor:
    if not isinstance(value, NkiTensor):
        raise refuse(f"{what}: a {type(value).__name__} is no tensor", ARRAYS)
    if value.on_chip:
        raise refuse(f"{what}: operand `{value.name}` must be in HBM, got {value.buffer.name}")
    return value


def load(src: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """A new SBUF tile with the elements of an HBM tensor: [partitions, …], at most 128 partitions.

    Raises:
        NkiLimitError: for more partitions, or an access outside the tensor.
    """
    tracer = current("nl.load")
    source = _in_hbm(src, "nl.load")
    if tracer.generation == BETA1 and source.ndim == 1:  # a column: one element a partition
        source = source.expand_dim(1)
    name = f"load of {source.name}"
    target = tracer.allocate(source.shape, source.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf, name)
    tracer.emit("dma_copy", {"dst": target, "src": source}, mask=mask)
    return target


def load_transpose2d(src: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """A new SBUF tile with the mirror of an HBM tensor of two axes, read element by element."""
    tracer = current("nl.load_transpose2d")
    source = _in_hbm(src, "nl.load_transpose2d")
    if source.ndim != 2:
        raise refuse(f"nl.load_transpose2d: `{source.name}` has {source.ndim} axes; expected 2")
    mirrored = source.permute((1, 0))
    target = result_tile(tracer, mirrored.shape, dtype, source.dtype)
    tracer.emit("dma_copy", {"dst": target, "src": mirrored}, mask=mask)
    return target


def store(dst: object, value: object, *, mask: object = None) -> None:
    """Write a tile, or a number, to an HBM tensor of as many elements; a dtype that differs is converted."""
    tracer = current("nl.store")
    target = _in_hbm(dst, "nl.store")
    if is_number(value):
        filled = tracer.allocate(target.shape if target.ndim > 1 else (1, target.size), target.dtype, buffers.sbuf)
        tracer.emit("memset", {"dst": filled, "value": number(value)})
        value = filled
    source = on_chip(value, "nl.store")
    tracer.emit("dma_copy", {"dst": target, "src": source}, mask=mask)


def transpose_tile(tracer: Tracer, data: NkiTensor) -> NkiTensor:
    """The mirror [F, P] of a tile, in SBUF: by the Vector engine up to 32 x 32, else by the Tensor engine via PSUM."""
    rows, columns = data.shape[0], data.size // data.shape[0]
    target = result_tile(tracer, (columns, rows), data.dtype, data.dtype)
    if rows <= _VECTOR_TRANSPOSE and columns <= _VECTOR_TRANSPOSE:
        tracer.emit("nc_transpose_vector", {"dst": target, "data": data})
        return target
    source = data
    if data.buffer.space is not Space.SBUF:
        source = result_tile(tracer, data.shape, data.dtype, data.dtype)
        tracer.emit("tensor_copy", {"dst": source, "src": data})
    middle = tracer.allocate((columns, rows), data.dtype, buffers.psum)
    tracer.emit("nc_transpose", {"dst": middle, "data": source})
    tracer.emit("tensor_copy", {"dst": target, "src": middle})
    return target


def transpose(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The mirror of a tile of two axes, in SBUF; at most 128 x 128."""
    tracer = current("nl.transpose")
    if mask is not None:
        raise refuse("nl.transpose takes no mask here: give it the part of the tile that is filled")
    mirrored = transpose_tile(tracer, on_chip(x, "nl.transpose"))
    if dtype is None or nki_dtype(dtype) == mirrored.dtype:
        return mirrored
    target = result_tile(tracer, mirrored.shape, dtype, mirrored.dtype)
    tracer.emit("tensor_copy", {"dst": target, "src": mirrored})
    return target


def matmul(x: object, y: object, transpose_x: bool = False, *, mask: object = None) -> NkiTensor:
    """x @ y (x.T @ y where x comes transposed) as a new PSUM tile: x up to 128 x 128, y up to 128 x 512.

    Without `transpose_x` the Tensor engine transposes x first, which `import nki` leaves to the author.
    """
    tracer = current("nl.matmul")
    if mask is not None:
        raise refuse("nl.matmul takes no mask here: give it the parts of the tiles that are filled")
    left, right = on_chip(x, "nl.matmul"), on_chip(y, "nl.matmul")
    if not transpose_x:
        tracer.note_legacy("nl.matmul without transpose_x=True")
        left = transpose_tile(tracer, left)
    shape = (left.size // left.shape[0], *right.shape[1:])
    target = tracer.allocate(shape, float32, buffers.psum)
    target.producer = tracer.emit("nc_matmul", {"dst": target, "stationary": left, "moving": right})
    return target


def expand_dims(data: object, axis: int) -> NkiTensor:
    """A view with a new axis of one element."""
    if not isinstance(data, NkiTensor):
        raise refuse(f"nl.expand_dims: a {type(data).__name__} is no tensor")
    return data.expand_dim(axis)


def broadcast_to(x: object, shape: Sequence[int]) -> NkiTensor:
    """Free axes of one element repeated by a view; a single partition repeated by a product with a column of ones.

    The product is exact: each element is multiplied by 1 and added to nothing.
    """
    tracer = current("nl.broadcast_to")
    if not isinstance(x, NkiTensor):
        raise refuse(f"nl.broadcast_to: a {type(x).__name__} is no tensor")
    new = tuple(int(count) for count in shape)
    if not x.on_chip or x.shape[0] == new[0]:
        return cast("NkiTensor", TensorViews.broadcast_to(x, new))
    if x.shape[0] != 1:
        raise refuse(f"nl.broadcast_to: `{x.name}` of shape {list(x.shape)} does not broadcast to {list(new)}")
    repeated = repeat_partition(tracer, x, new[0])
    return repeated if repeated.shape == new else repeated.broadcast_to(new)


def gather_flattened(
    data: object, indices: object, axis: int = 0, dtype: object = None, *, mask: object = None
) -> NkiTensor:
    """A new tile: of each partition the elements that the uint32 `indices` of the partition name, in their shape."""
    tracer = current("nl.gather_flattened")
    if axis != 0:
        raise refuse(f"nl.gather_flattened: axis={axis}; the free axes of each partition are gathered (axis=0)")
    source, chosen = on_chip(data, "nl.gather_flattened"), on_chip(indices, "nl.gather_flattened")
    target = result_tile(tracer, chosen.shape, None, source.dtype)
    tracer.emit("nc_n_gather", {"dst": target, "data": source, "indices": chosen}, mask=mask)
    if dtype is None or nki_dtype(dtype) == source.dtype:
        return target
    converted = result_tile(tracer, chosen.shape, dtype, source.dtype)
    tracer.emit("tensor_copy", {"dst": converted, "src": target}, mask=mask)
    return converted


def static_cast(input_data: object, dtype: object) -> Any:  # noqa: ANN401  # a number or a tile, as is given
    """Beta 1: a number or a tile in another dtype."""
    tracer = current("nl.static_cast")
    tracer.note_legacy("nl.static_cast")
    kind = nki_dtype(dtype)
    if is_number(input_data):
        return np.asarray(input_data).astype(kind).item()
    source = on_chip(input_data, "nl.static_cast")
    target = result_tile(tracer, source.shape, kind, kind)
    tracer.emit("tensor_copy", {"dst": target, "src": source})
    return target
