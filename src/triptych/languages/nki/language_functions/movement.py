"""`nki.language`: movement between memories, transposition, multiplication of matrices, and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from triptych.languages.nki.language_functions.elementwise import (
    is_number,
    number,
    on_chip,
    repeat_partition,
    result_tile,
)
from triptych.languages.nki.language_functions.renaming import also_called
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import float32, nki_dtype
from triptych.languages.nki.tracing.indexing import ARRAYS, Cut, refuse
from triptych.languages.nki.tracing.tensor_views import TensorViews
from triptych.languages.nki.tracing.tensors import MaskedTile, NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer, current
from triptych.neuron.isa import Space
from triptych.neuron.isa.trace import BETA1, AttributeValue

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


def transpose_tile(tracer: Tracer, data: NkiTensor, target: NkiTensor | None = None) -> NkiTensor:
    """The mirror [F, P] of a tile, in SBUF: by the Vector engine up to 32 x 32, else by the Tensor engine via PSUM."""
    rows, columns = data.shape[0], data.size // data.shape[0]
    target = result_tile(tracer, (columns, rows), data.dtype, data.dtype) if target is None else target
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
    data = on_chip(x, "nl.transpose")
    part = tracer.cut(mask, data.shape)
    mirrored = result_tile(tracer, (data.size // data.shape[0], data.shape[0]), data.dtype, data.dtype)
    parts = mirrored_parts(mirrored, data, part)
    if parts is not None:
        transpose_tile(tracer, parts[1], parts[0])
    tracer.note_filled(mirrored, mirrored_cut(part))
    if dtype is None or nki_dtype(dtype) == mirrored.dtype:
        return mirrored
    target = result_tile(tracer, mirrored.shape, dtype, mirrored.dtype)
    if parts is not None:
        into = target.part(mirrored_cut(part) or ())
        tracer.emit("tensor_copy", {"dst": into, "src": parts[0]})
    tracer.note_filled(target, mirrored_cut(part))
    return target


def mirrored_cut(part: Cut | None) -> Cut | None:
    """Of what a mask leaves of a tile of two axes what it leaves of the mirror."""
    return part[::-1] if part else part


def mirrored_parts(dst: NkiTensor, data: NkiTensor, part: Cut | None) -> tuple[NkiTensor, NkiTensor] | None:
    """What a transposition writes, and of what, where a mask leaves a part of the data; None where it leaves nothing.

    Raises:
        NkiError: for a part of a tile of more than two axes.
    """
    if part is None:
        return None
    if not part:
        return dst, data
    if data.ndim != 2 or dst.ndim != 2:
        raise refuse(f"a mask of a transposition: `{data.name}` has the shape {list(data.shape)}; expected two axes")
    return dst.part(part[::-1]), data.part(part)


def emit_product(
    tracer: Tracer,
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    attributes: Mapping[str, AttributeValue] | None = None,
    mask: object = None,
) -> int | None:
    """dst[M, N] (+)= stationary[K, M].T @ moving[K, N] of what masks leave; None where that is nothing.

    `mask` is one of moving, of K and N; Beta 1's operand masks, `stationary[i_f < m]`, are each of its own tile.
    """
    (stationary, rows), (moving, columns) = _unmasked(stationary), _unmasked(moving)
    if mask is not None:
        if (rows, columns) != ((), ()):
            raise refuse("a product takes mask=, or operands with masks, not both")
        columns = tracer.cut(mask, moving.shape)
        rows = columns[:1] if columns else columns
    part = None if rows is None or columns is None else _common(rows, columns)
    if part is None or rows is None or columns is None:
        tracer.note_filled(dst, None)
        return None
    operands: dict[str, TileOrNumber | None] = {"dst": dst, "stationary": stationary, "moving": moving}
    filled: Cut = ()
    if rows or columns:
        if (attributes or {}).get("double_row") or (any(rows[1:]) and stationary.ndim != 2):
            raise refuse("a mask of a product with double_row, or of stationary with more than two axes")
        filled = (*(rows[1:] or (None,)), *columns[1:])
        filled = filled if any(filled) else ()
        operands = {
            "dst": dst.part(filled), "stationary": stationary.part((*part, *rows[1:])),
            "moving": moving.part((*part, *columns[1:])),
        }  # fmt: skip
    recorded = tracer.emit("nc_matmul", operands, attributes)
    if rows or columns:
        tracer.note_filled(dst, filled)
    return recorded


def _unmasked(operand: NkiTensor) -> tuple[NkiTensor, Cut | None]:
    """The tile, and what its own mask leaves of it."""
    return (operand.tile, operand.cut) if isinstance(operand, MaskedTile) else (operand, ())


def _common(rows: Cut, columns: Cut) -> Cut | None:
    """What both leave of the contraction; None for nothing."""
    kept = [one for one in (*rows[:1], *columns[:1]) if one is not None]
    if not kept:
        return (None,)
    first, end = max(one[0] for one in kept), min(one[1] for one in kept)
    return ((first, end),) if first < end else None


def matmul(x: object, y: object, transpose_x: bool = False, *, mask: object = None) -> NkiTensor:
    """x @ y (x.T @ y where x comes transposed) as a new PSUM tile: x up to 128 x 128, y up to 128 x 512.

    Without `transpose_x` the Tensor engine transposes x first, which `import nki` leaves to the author.
    """
    tracer = current("nl.matmul")
    left, right = on_chip(x, "nl.matmul"), on_chip(y, "nl.matmul")
    if not transpose_x:
        if isinstance(left, MaskedTile):
            raise refuse(
                f"nl.matmul: x is `{left.name}` with a mask as its index, and without transpose_x=True is transposed "
                "first; such a mask is of a tile as the Tensor engine takes it, of shape [K, M]",
                "pass x as [K, M] with transpose_x=True, mask and all, or give mask= over the axes of y",
            )
        tracer.note_legacy("nl.matmul without transpose_x=True")
        left = transpose_tile(tracer, left)
    shape = (left.size // left.shape[0], *right.shape[1:])
    target = tracer.allocate(shape, float32, buffers.psum)
    target.producer = emit_product(tracer, target, left, right, None, mask)
    return target


@also_called(x="data")
def expand_dims(data: object, axis: int) -> NkiTensor:
    """A view with a new axis of one element."""
    if not isinstance(data, NkiTensor):
        raise refuse(f"nl.expand_dims: a {type(data).__name__} is no tensor")
    return data.expand_dim(axis)


@also_called(src="x")
def broadcast_to(x: object, shape: Sequence[int], dtype: object = None) -> NkiTensor:
    """Free axes of one element repeated by a view; a single partition repeated by a product with a column of ones.

    The product is exact: each element is multiplied by 1 and added to nothing. Another `dtype` asks for a copy.
    """
    tracer = current("nl.broadcast_to")
    made = _repeated(tracer, x, shape)
    if dtype is None or nki_dtype(dtype) == made.dtype:
        return made
    target = result_tile(tracer, made.shape, dtype, made.dtype)
    tracer.emit("tensor_copy", {"dst": target, "src": on_chip(made, "nl.broadcast_to")})
    return target


def _repeated(tracer: Tracer, x: object, shape: Sequence[int]) -> NkiTensor:
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
