"""`nki.isa`: the instructions of the GPSIMD engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triptych.languages.nki.isa_functions.function import Operation, declaration
from triptych.languages.nki.isa_functions.operands import one_partition
from triptych.languages.nki.language_functions.elementwise import number, on_chip
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.indexing import IndexTile, Mask, refuse
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa.trace import AttributeValue, Pattern


def _affine(index: IndexTile) -> dict[str, AttributeValue]:
    """An index tile as the engine's affine index: its first axis walks the partitions."""
    pattern: Pattern = tuple(zip(index.steps[1:], index.shape[1:], strict=True))
    return {"pattern": pattern, "offset": index.offset, "channel_multiplier": index.steps[0]}


def _iota_beta1(expr: IndexTile, dtype: object, *, mask: object = None) -> NkiTensor:
    if not isinstance(expr, IndexTile) or len(expr.shape) < 2:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("nisa.iota: expected an index expression of two axes, such as nl.arange(512)[None, :]")
    tracer = current("nisa.iota")
    target = tracer.allocate(expr.shape, nki_dtype(dtype), buffers.sbuf)
    tracer.emit("iota", {"dst": target}, _affine(expr), mask=mask)
    return target


@declaration(legacy=_iota_beta1)
def iota(dst: NkiTensor, pattern: Sequence[Sequence[int]], offset: int = 0, channel_multiplier: int = 0) -> None:
    """dst = offset + partition * channel_multiplier + sum of index * step, over a pattern [[step, count], …]."""


def _affine_select_beta1(
    pred: Mask, on_true_tile: NkiTensor, on_false_value: float, *, mask: object = None, dtype: object = None
) -> NkiTensor:
    if not isinstance(pred, Mask) or len(pred.terms) != 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("nisa.affine_select: expected one comparison of index tiles, such as i_p >= i_f")
    tracer = current("nisa.affine_select")
    data = on_chip(on_true_tile, "nisa.affine_select")
    index, comparison = pred.terms[0]
    target = tracer.allocate(data.shape, data.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)
    operands = {"dst": target, "on_true_tile": data, "on_false_value": number(on_false_value)}
    tracer.emit("affine_select", operands, {**_affine(_full(index, data.shape)), "cmp_op": comparison}, mask=mask)
    return target


def _full(index: IndexTile, shape: tuple[int, ...]) -> IndexTile:
    if len(index.shape) != len(shape) or any(a not in (1, b) for a, b in zip(index.shape, shape, strict=True)):
        raise refuse(f"nisa.affine_select: a condition of shape {list(index.shape)} on a tile of shape {list(shape)}")
    return index.spread(shape)


@declaration(legacy=_affine_select_beta1)
def affine_select(
    dst: NkiTensor,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: NkiTensor,
    on_false_value: float,
    cmp_op: Operation = np.equal,
    offset: int = 0,
) -> None:
    """dst = on_true_tile where the affine index compares with 0 as `cmp_op` says, else the number on_false_value."""


@declaration(one_partition)
def tensor_partition_reduce(dst: NkiTensor, op: Operation, data: NkiTensor) -> None:
    """dst[1, N] = op (add, maximum, bitwise_or, bitwise_and) over the partitions of data."""
