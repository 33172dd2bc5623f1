"""`nki.language`: movement between memories, transposition, multiplication of matrices, and shapes."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki import buffers
from triptych.languages.nki.dtypes import float32, nki_dtype
from triptych.languages.nki.elementwise import on_chip, result_tile
from triptych.languages.nki.indexing import ARRAYS, refuse
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import Tracer, current
from triptych.neuron.isa import Engine, Space

_MOVING_MAXIMUM = 512
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
    """Write a tile to an HBM tensor of the same number of elements; a dtype that differs is converted."""
    tracer = current("nl.store")
    target = _in_hbm(dst, "nl.store")
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
        return x.broadcast_to(new)
    if x.shape[0] != 1:
        raise refuse(f"nl.broadcast_to: `{x.name}` of shape {list(x.shape)} does not broadcast to {list(new)}")
    repeated = _repeat_partition(tracer, x, new[0])
    return repeated if repeated.shape == new else repeated.broadcast_to(new)


def _repeat_partition(tracer: Tracer, x: NkiTensor, partitions: int) -> NkiTensor:
    dtype = x.dtype if x.dtype.name in ("float32", "bfloat16", "float16") else float32
    source = x.reshape((1, x.size))
    if dtype != x.dtype or x.buffer.space is not Space.SBUF:
        source = result_tile(tracer, (1, x.size), dtype, dtype)
        tracer.emit("tensor_copy", {"dst": source, "src": x.reshape((1, x.size))})
    ones = result_tile(tracer, (1, partitions), dtype, dtype)
    tracer.emit("memset", {"dst": ones, "value": 1.0}, engine=Engine.VECTOR)
    target = result_tile(tracer, (partitions, x.size), x.dtype, x.dtype)
    for start in range(0, x.size, _MOVING_MAXIMUM):
        end = min(start + _MOVING_MAXIMUM, x.size)
        product = tracer.allocate((partitions, end - start), float32, buffers.psum)
        tracer.emit("nc_matmul", {"dst": product, "stationary": ones, "moving": source[:, start:end]})
        tracer.emit("tensor_copy", {"dst": target[:, start:end], "src": product})
    return target.reshape((partitions, *x.shape[1:]))
