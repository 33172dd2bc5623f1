"""`nki.language`: reductions over free axes, and what is composed of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product

from triptych.languages.nki.language_functions.elementwise import activate, binary, on_chip, result_tile
from triptych.languages.nki.language_functions.elementwise import reciprocal as reciprocal_of
from triptych.languages.nki.language_functions.movement import broadcast_to
from triptych.languages.nki.tracing.dtypes import Dtype, float32, nki_dtype
from triptych.languages.nki.tracing.indexing import refuse, sequence, whole
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current

Axes = int | Sequence[int]


def trailing_axes(axis: object, shape: Sequence[int], what: str) -> int:
    """How many axes a reduction takes from the end; it takes nothing else.

    Raises:
        NkiError: for the partition axis, or axes that are not the last ones.
    """
    rank = len(shape)
    if type(axis) is int and axis == rank - 1 > 0:
        return 1
    places = _free_axes(axis, rank, what)
    if places != list(range(rank - len(places), rank)):
        raise refuse(f"{what}: axes {places} of shape {list(shape)} are not the last ones")
    return len(places)


def _free_axes(axis: object, rank: int, what: str) -> list[int]:
    """The axes to reduce, in order; the partition axis is none."""
    places = sorted({_place(one, rank, what) for one in sequence(axis)})
    if 0 in places:
        raise refuse(
            f"{what}: axis 0 is the partition axis, over which the Vector engine cannot reduce",
            "transpose first, or multiply by a column of ones with nisa.nc_matmul",
        )
    return places


def _place(axis: object, rank: int, what: str) -> int:
    place = whole(axis)
    if place is None or not -rank <= place < rank:
        raise refuse(f"{what}: {axis!r} is no axis of a tile of {rank} axes")
    return place % rank


def reduced_shape(shape: Sequence[int], axes: int, keepdims: bool) -> tuple[int, ...]:
    """The shape that is left; an on-chip tile keeps two axes."""
    kept = tuple(shape[: len(shape) - axes])
    if keepdims:
        return kept + (1,) * axes
    return kept if len(kept) > 1 else (*kept, 1)


def reduce(
    name: str,
    what: str,
    x: object,
    axis: Axes,
    dtype: object,
    mask: object,
    keepdims: bool,
    default: Dtype | None = None,
) -> NkiTensor:
    """One reduction by the Vector engine, which walks the axes that are kept before those that are not."""
    tracer = current(what)
    data = on_chip(x, what)
    places = _free_axes(axis, data.ndim, what)
    kept = [at for at in range(data.ndim) if at not in places]
    order, attributes = [*kept, *places], {"op": name, "axes": len(places)}
    last = order == list(range(data.ndim))
    shape = reduced_shape([data.shape[at] for at in order], len(places), last and keepdims)
    target = result_tile(tracer, shape, dtype, default or data.dtype)
    if last:
        tracer.emit("tensor_reduce", {"dst": target, "data": data}, attributes, mask=mask)
        return target
    part = tracer.cut(mask, data.shape)
    left = tuple(part[at] for at in kept) if part else ()
    if part is not None:
        operands = {"dst": target.part(left) if any(left) else target, "data": data.part(part) if part else data}
        tracer.emit("tensor_reduce", {**operands, "data": operands["data"].permute(order)}, attributes)
    if part != ():
        tracer.note_filled(target, None if part is None else left)
    if not keepdims:
        return target
    return target.reshape([1 if at in places else count for at, count in enumerate(data.shape)])


def sum(
    x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False
) -> NkiTensor:  # the language's own name
    """The sum over free axes."""
    return reduce("add", "nl.sum", x, axis, dtype, mask, keepdims)


def max(
    x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False
) -> NkiTensor:  # the language's own name
    """The largest over free axes."""
    return reduce("maximum", "nl.max", x, axis, dtype, mask, keepdims)


def min(
    x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False
) -> NkiTensor:  # the language's own name
    """The smallest over free axes."""
    return reduce("minimum", "nl.min", x, axis, dtype, mask, keepdims)


def prod(x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False) -> NkiTensor:
    """The product over free axes."""
    return reduce("multiply", "nl.prod", x, axis, dtype, mask, keepdims)


def all(
    x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False
) -> NkiTensor:  # the language's own name
    """Whether all elements over free axes are not 0."""
    return reduce("logical_and", "nl.all", x, axis, dtype, mask, keepdims)


def _count(data: NkiTensor, axis: Axes, mask: object, what: str) -> int:
    """How many elements that the mask lets through are reduced into one."""
    cut = current(what).cut(mask, data.shape) or (None,) * data.ndim
    counts = [part[1] - part[0] if part else count for part, count in zip(cut, data.shape, strict=True)]
    return product(counts[at] for at in _free_axes(axis, data.ndim, what))


def mean(x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False) -> NkiTensor:
    """The mean over free axes: a sum in float32, times 1 over the count of what the mask lets through."""
    data = on_chip(x, "nl.mean")
    total = reduce("add", "nl.mean", data, axis, float32, mask, keepdims)
    final = data.dtype if dtype is None else nki_dtype(dtype)
    return binary("multiply", total, 1.0 / _count(data, axis, mask, "nl.mean"), final, None)


def var(x: object, axis: Axes, dtype: object = None, *, mask: object = None, keepdims: bool = False) -> NkiTensor:
    """The variance (of the population) over free axes."""
    data = on_chip(x, "nl.var")
    centre = mean(data, axis, float32, mask=mask, keepdims=True)
    deviation = binary("subtract", data, centre, float32, mask)
    squares = activate("square", deviation, float32, mask)
    final = data.dtype if dtype is None else nki_dtype(dtype)
    return mean(squares, axis, final, mask=mask, keepdims=keepdims)


def softmax(
    x: object, axis: Axes = -1, dtype: object = None, *, compute_dtype: object = None, mask: object = None
) -> NkiTensor:
    """exp(x - max) over its sum, along free axes."""
    data = on_chip(x, "nl.softmax")
    inner = float32 if compute_dtype is None else nki_dtype(compute_dtype)
    largest = max(data, axis, float32, mask=mask, keepdims=True)
    powers = activate("exp", binary("subtract", data, largest, inner, mask), inner, mask)
    total = sum(powers, axis, float32, mask=mask, keepdims=True)
    final = data.dtype if dtype is None else nki_dtype(dtype)
    return binary("multiply", powers, reciprocal_of(total), final, mask)


def rms_norm(
    x: object,
    w: object,
    axis: Axes,
    n: int,
    epsilon: float = 1e-6,
    *,
    dtype: object = None,
    compute_dtype: object = None,
    mask: object = None,
) -> NkiTensor:
    """x over the root of its mean square (the sum over `axis`, divided by n, plus epsilon), times w."""
    data, weight = on_chip(x, "nl.rms_norm"), on_chip(w, "nl.rms_norm")
    inner = float32 if compute_dtype is None else nki_dtype(compute_dtype)
    squares = activate("square", data, inner, mask)
    total = sum(squares, axis, float32, mask=mask, keepdims=True)
    root = activate("rsqrt", binary("add", binary("multiply", total, 1.0 / n), epsilon), float32)
    if weight.shape[0] == 1 and data.shape[0] > 1:
        weight = broadcast_to(weight, (data.shape[0], *weight.shape[1:]))
    final = data.dtype if dtype is None else nki_dtype(dtype)
    return binary("multiply", binary("multiply", data, root, inner, mask), weight, final, mask)
