"""Tensors as a kernel sees them while it is traced: shape, dtype and memory; no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from triptych.core.errors import NkiLimitError, UnknownNkiName
from triptych.languages.nki.buffers import Buffer
from triptych.languages.nki.dtypes import Dtype
from triptych.languages.nki.frames import user_location
from triptych.languages.nki.indexing import Box, Ds, IndexTile, join_shapes, refuse

if TYPE_CHECKING:
    from triptych.languages.nki.tracer import Tracer


@dataclass(frozen=True, slots=True)
class AxisRange:
    """An index that must stay inside an axis of the tensor: checked when it is used, since a mask may cut it."""

    axis: int
    extent: int
    index: IndexTile


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a declared tensor: `offset` and `steps` in elements of it, as its region has them."""

    tensor: int
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    partition_axis: int | None
    """The axis that walks the partitions of an on-chip tensor; None in HBM."""
    ranges: tuple[AxisRange, ...] = ()

    def cut(self, box: Box) -> View:
        """The part inside a box over the leading axes; axes of one element stand for the whole axis."""
        offset, shape = self.offset, list(self.shape)
        own: list[tuple[int, int]] = []
        for axis, count in enumerate(self.shape):
            first, end = box[axis] if axis < len(box) and count > 1 else (0, count)
            if end > count:
                raise refuse(f"a mask over {end} elements of axis {axis} on a tensor of shape {list(self.shape)}")
            own.append((first, end))
            offset += self.steps[axis] * first
            shape[axis] = end - first
        ranges = tuple(replace(one, index=_cut_index(one.index, tuple(own))) for one in self.ranges)
        return replace(self, offset=offset, shape=tuple(shape), ranges=ranges)


def _cut_index(index: IndexTile, box: Box) -> IndexTile:
    offset = index.offset + sum(step * first for step, (first, _) in zip(index.steps, box, strict=True))
    return IndexTile(tuple(end - first for first, end in box), offset, index.steps)


class NkiTensor:
    """A tensor, or a view of one. Supports basic slicing and index tiles; its values exist only when the trace runs."""

    __slots__ = ("_consumed", "_tracer", "_view", "buffer", "dtype", "name", "producer", "writable")

    def __init__(
        self,
        tracer: Tracer,
        view: View,
        dtype: Dtype,
        buffer: Buffer,
        name: str,
        *,
        writable: bool = True,
        producer: int | None = None,
    ) -> None:
        """A tensor of `tracer`'s kernel; `producer` is the instruction that made it, where one returned it."""
        self._tracer = tracer
        self._view = view
        self.dtype = dtype
        self.buffer = buffer
        self.name = name
        self.writable = writable
        self.producer = producer
        self._consumed = False

    @property
    def tracer(self) -> Tracer:
        """The trace that it belongs to."""
        return self._tracer

    @property
    def view(self) -> View:
        """Its elements."""
        if self._consumed:
            raise refuse(f"tensor `{self.name}` was accumulated into another by '+='; use that one")
        return self._view

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._view.shape

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self._view.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self._view.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps of each axis, in elements."""
        return self._view.steps

    @property
    def offset(self) -> int:
        """Elements from the tensor's first element."""
        return self._view.offset

    @property
    def on_chip(self) -> bool:
        """Whether it lies in SBUF or PSUM."""
        return self.buffer.space.on_chip

    def __len__(self) -> int:
        """Elements along the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Name, shape, dtype and memory."""
        return f"NkiTensor({self.name}, shape={list(self.shape)}, dtype={self.dtype}, buffer={self.buffer})"

    def with_view(self, view: View) -> NkiTensor:
        """Other elements of the same tensor."""
        return NkiTensor(self._tracer, view, self.dtype, self.buffer, self.name, writable=self.writable)

    def consume(self) -> None:
        """Forbid further use: its instruction now writes elsewhere."""
        self._consumed = True

    # -- indexing -----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: object) -> NkiTensor:
        """A view: by whole numbers, slices, `nl.ds` and `...`, or by index tiles (`nl.arange`, `nl.mgrid`).

        Raises:
            NkiLimitError: for an index outside the tensor.
            NkiError: for an index that NKI does not take.
        """
        keys = _expand(key, self)
        if any(isinstance(one, IndexTile) for one in keys):
            self._tracer.note_legacy("index tiles (nl.arange, nl.mgrid)")
            return self.with_view(self._by_tiles(keys))
        return self.with_view(self._by_slices(keys))

    def _by_slices(self, keys: Sequence[object]) -> View:
        self.check_ranges(self.view)
        offset, shape, steps = self._view.offset, list[int](), list[int]()
        partition_axis: int | None = None
        for axis, (one, count, step) in enumerate(zip(keys, self.shape, self._view.steps, strict=True)):
            first, stride, number = _slice_of(one, axis, count, self.name)
            offset += step * first
            is_partition = axis == self._view.partition_axis
            if isinstance(one, int | np.integer) and not is_partition:
                continue
            if is_partition:
                partition_axis = len(shape)
            shape.append(number)
            steps.append(step * stride)
        if self.on_chip and len(shape) == 1:
            shape.append(1)
            steps.append(1)
        return View(self._view.tensor, offset, tuple(shape), tuple(steps), partition_axis)

    def _by_tiles(self, keys: Sequence[object]) -> View:
        self.check_ranges(self.view)
        if any(not isinstance(one, IndexTile | int | np.integer) for one in keys):
            raise refuse(
                f"tensor `{self.name}`: index tiles and slices cannot be mixed in one index",
                "give every axis an index tile or a whole number",
            )
        shape: tuple[int, ...] = ()
        for one in keys:
            if isinstance(one, IndexTile):
                if len(one.shape) < 2:
                    raise refuse(
                        f"tensor `{self.name}`: a one-dimensional nl.arange cannot index",
                        "give it its place among the axes: nl.arange(n)[:, None] or nl.arange(n)[None, :]",
                    )
                shape = join_shapes(shape, one.shape)
        indices = [
            one.spread(shape) if isinstance(one, IndexTile) else IndexTile(shape, int(one), (0,) * len(shape))  # type: ignore[arg-type]
            for one in keys
        ]
        return self._gather(indices, shape)

    def _gather(self, indices: Sequence[IndexTile], shape: tuple[int, ...]) -> View:
        view = self._view
        offset = view.offset + sum(one.offset * step for one, step in zip(indices, view.steps, strict=True))
        steps = tuple(
            sum(one.steps[axis] * step for one, step in zip(indices, view.steps, strict=True))
            for axis in range(len(shape))
        )
        ranges = tuple(AxisRange(axis, self.shape[axis], one) for axis, one in enumerate(indices))
        partition_axis = None
        if view.partition_axis is not None:
            walked = [axis for axis, step in enumerate(indices[view.partition_axis].steps) if step]
            if len(walked) > 1:
                raise refuse(
                    f"tensor `{self.name}`: the partition index depends on the axes {walked}; it may on one only"
                )
            partition_axis = walked[0] if walked else 0
        return View(view.tensor, offset, shape, steps, partition_axis, ranges)

    def check_ranges(self, view: View) -> None:
        """Refuse indices outside the tensor.

        Raises:
            NkiLimitError: naming the axis, the range and the size.
        """
        for one in view.ranges:
            low, high = one.index.bounds()
            if low < 0 or high >= one.extent:
                raise out_of_bounds(self.name, one.axis, low, high, one.extent)

    def __setitem__(self, key: object, value: object) -> None:
        """Beta 1's assignment: a copy into the view, or the fill with a number."""
        self._tracer.assign(self[key], value)

    def __iadd__(self, value: object) -> NkiTensor:
        """Beta 1's accumulation: `psum += nisa.nc_matmul(…)`."""
        return self._tracer.accumulate(self, value)

    # -- views --------------------------------------------------------------------------------------------------------

    def reshape(self, shape: Sequence[int]) -> NkiTensor:
        """The same elements in another shape; on chip the partition axis stays as it is.

        Raises:
            NkiError: where the elements do not lie one behind the other, or the shape has more or fewer of them.
        """
        self.check_ranges(self.view)
        new = tuple(int(count) for count in shape)
        if prod(new) != self.size:
            raise refuse(f"cannot reshape `{self.name}` of shape {list(self.shape)} into {list(new)}")
        if not self.on_chip:
            return self.with_view(self._reshaped(self.shape, self._view.steps, new, ()))
        if self._view.partition_axis != 0 or not new or new[0] != self.shape[0] or len(new) < 2:
            raise refuse(
                f"cannot reshape `{self.name}` of shape {list(self.shape)} into {list(new)}: "
                "the partition axis of an on-chip tensor must stay the first and keep its size"
            )
        head = ((new[0], self._view.steps[0]),)
        return self.with_view(self._reshaped(self.shape[1:], self._view.steps[1:], new[1:], head))

    def _reshaped(
        self, old: Sequence[int], steps: Sequence[int], new: Sequence[int], head: Sequence[tuple[int, int]]
    ) -> View:
        kept = [(count, step) for count, step in zip(old, steps, strict=True) if count > 1]
        inner = kept[-1][1] if kept else 1
        expected = inner
        for count, step in reversed(kept):
            if step != expected:
                raise refuse(f"cannot reshape `{self.name}`: its elements do not lie at equal steps")
            expected *= count
        fresh = [inner * prod(new[axis + 1 :]) for axis in range(len(new))]
        pairs = [*head, *zip(new, fresh, strict=True)]
        shape, all_steps = tuple(count for count, _ in pairs), tuple(step for _, step in pairs)
        return replace(self._view, shape=shape, steps=all_steps, ranges=())

    def broadcast_to(self, shape: Sequence[int]) -> NkiTensor:
        """A read-only view in which free axes of one element are repeated; partitions are not repeated by a view.

        Raises:
            NkiError: for a shape to which the tensor does not broadcast.
        """
        self.check_ranges(self.view)
        new = tuple(int(count) for count in shape)
        view = self._view
        missing = len(new) - len(view.shape)
        if missing < 0 or (missing and self.on_chip):
            raise refuse(f"`{self.name}` of shape {list(view.shape)} does not broadcast to {list(new)}")
        steps: list[int] = [0] * missing
        for axis, (count, step) in enumerate(zip(view.shape, view.steps, strict=True)):
            wanted = new[axis + missing]
            if count != wanted and (count != 1 or axis == view.partition_axis):
                raise refuse(
                    f"`{self.name}` of shape {list(view.shape)} does not broadcast to {list(new)}",
                    "nl.broadcast_to also repeats a single partition" if axis == view.partition_axis else None,
                )
            steps.append(step if count == wanted else 0)
        widened = replace(view, shape=new, steps=tuple(steps), ranges=())
        return NkiTensor(self._tracer, widened, self.dtype, self.buffer, self.name, writable=False)

    broadcast = broadcast_to

    def permute(self, axes: Sequence[int]) -> NkiTensor:
        """The axes in another order; on chip the partition axis stays the first."""
        self.check_ranges(self.view)
        order = tuple(int(axis) for axis in axes)
        if sorted(order) != list(range(self.ndim)):
            raise refuse(f"{list(order)} is no order of the {self.ndim} axes of `{self.name}`")
        if self.on_chip and order[0] != self._view.partition_axis:
            raise refuse(f"the partition axis of `{self.name}` must stay the first", "transpose with nisa.nc_transpose")
        view = self._view
        shape, steps = tuple(view.shape[axis] for axis in order), tuple(view.steps[axis] for axis in order)
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=()))

    def expand_dim(self, axis: int) -> NkiTensor:
        """A new axis of one element; on chip not before the partition axis."""
        self.check_ranges(self.view)
        place = axis + self.ndim + 1 if axis < 0 else axis
        if not (1 if self.on_chip else 0) <= place <= self.ndim:
            raise refuse(f"cannot put a new axis at {axis} of `{self.name}` with shape {list(self.shape)}")
        view = self._view
        shape, steps = list(view.shape), list(view.steps)
        shape.insert(place, 1)
        steps.insert(place, 0)
        return self.with_view(replace(view, shape=tuple(shape), steps=tuple(steps), ranges=()))

    def squeeze_dim(self, axis: int) -> NkiTensor:
        """Without an axis of one element; the partition axis stays."""
        self.check_ranges(self.view)
        place = axis + self.ndim if axis < 0 else axis
        if not 0 <= place < self.ndim or self.shape[place] != 1 or place == self._view.partition_axis:
            raise refuse(f"cannot drop axis {axis} of `{self.name}` with shape {list(self.shape)}")
        view = self._view
        shape = tuple(count for at, count in enumerate(view.shape) if at != place)
        steps = tuple(step for at, step in enumerate(view.steps) if at != place)
        if self.on_chip and len(shape) < 2:
            raise refuse("SBUF and PSUM tensors must have at least 2 dimensions (partition-dim and free-dim)")
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=()))

    def ap(self, pattern: Sequence[Sequence[int]], offset: int = 0) -> NkiTensor:
        """The elements of an explicit access pattern [[step, count], …] over the tensor's storage, from `offset` on."""
        self.check_ranges(self.view)
        pairs = [(int(step), int(count)) for step, count in pattern]
        shape, steps = tuple(count for _, count in pairs), tuple(step for step, _ in pairs)
        if self.on_chip and len(shape) < 2:
            raise refuse("SBUF and PSUM tensors must have at least 2 dimensions (partition-dim and free-dim)")
        axis = 0 if self.on_chip else None
        return self.with_view(View(self._view.tensor, self._view.offset + int(offset), shape, steps, axis))

    # -- what a tensor without data cannot do ---------------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Never: values are not known while a kernel is traced."""
        raise refuse(
            f"control flow depends on the value of tensor `{self.name}`: values are not known while a kernel is traced",
            "select with nl.where or nisa.affine_select",
        )

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Never: a tensor has no values while a kernel is traced."""
        raise refuse(f"tensor `{self.name}` was given to numpy: it has no values while a kernel is traced")

    def __iter__(self) -> NoReturn:
        """Never: a tensor is no sequence."""
        raise refuse(f"tensor `{self.name}` cannot be iterated over", "loop over indices: for i in nl.affine_range(n)")

    def __getattr__(self, name: str) -> NoReturn:
        """An unknown attribute, with near names."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNkiName.of("attribute of NkiTensor", name, _public_names(), user_location())


def _public_names() -> list[str]:
    return [name for name in dir(NkiTensor) if not name.startswith("_")]


def out_of_bounds(name: str, axis: int, low: int, high: int, extent: int) -> NkiLimitError:
    """The error of an index outside an axis."""
    return NkiLimitError(
        f"Out-of-bound access for tensor `{name}` on dimension {axis}: index range [{low}, {high}] exceed dimension "
        f"size of {extent}",
        where=user_location(),
        hint="mask= cuts an access where a tile is not full (Beta 1); else make the last tile smaller",
    )


def _expand(key: object, tensor: NkiTensor) -> list[object]:
    """One index an axis: `...` and absent trailing axes become full slices."""
    keys: list[object] = list(key) if isinstance(key, tuple) else [key]  # pyright: ignore[reportUnknownArgumentType]
    if any(one is None for one in keys):
        raise refuse(f"tensor `{tensor.name}`: None makes no new axis in NKI", "use nl.expand_dims")
    dots = [at for at, one in enumerate(keys) if one is Ellipsis]
    if len(dots) > 1:
        raise refuse(f"tensor `{tensor.name}`: more than one '...' in an index")
    given = len(keys) - len(dots)
    if given > tensor.ndim:
        raise refuse(f"tensor `{tensor.name}` has {tensor.ndim} axes; the index has {given}")
    at = dots[0] if dots else len(keys)
    filling: list[object] = [slice(None)] * (tensor.ndim - given)
    return keys[:at] + filling + keys[at + len(dots) :]


def _slice_of(one: object, axis: int, count: int, name: str) -> tuple[int, int, int]:
    """(first, step, number) of a whole number, a slice or `nl.ds` on an axis of `count` elements."""
    if isinstance(one, bool | np.bool_):
        raise refuse(f"tensor `{name}`: {one} is no index")
    if isinstance(one, int | np.integer):
        first = int(one) + (count if one < 0 else 0)
        if not 0 <= first < count:
            raise out_of_bounds(name, axis, int(one), int(one), count)
        return first, 1, 1
    if isinstance(one, Ds):
        one = slice(one.start, one.start + one.size)
    if not isinstance(one, slice):
        raise refuse(
            f"tensor `{name}`: {type(one).__name__} is no index of NKI",
            "indices are whole numbers, slices, nl.ds(start, size) and '...'",
        )
    step = 1 if one.step is None else int(one.step)
    if step < 1:
        raise refuse(f"tensor `{name}`: the slice step {step} must be 1 or more")
    first = 0 if one.start is None else int(one.start) + (count if one.start < 0 else 0)
    end = count if one.stop is None else int(one.stop) + (count if one.stop < 0 else 0)
    if first < 0 or end > count:
        raise out_of_bounds(name, axis, first, end - 1, count)
    if end <= first:
        raise refuse(f"tensor `{name}`: the slice {first}:{end} of dimension {axis} is empty")
    return first, step, len(range(first, end, step))


def _operator(symbol: str) -> Callable[[NkiTensor, object], object]:
    def method(self: NkiTensor, other: object) -> object:
        return self.tracer.operate(symbol, self, other)

    return method


def _reversed_operator(symbol: str) -> Callable[[NkiTensor, object], object]:
    def method(self: NkiTensor, other: object) -> object:
        return self.tracer.operate(symbol, other, self)

    return method


OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power",
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
}  # fmt: skip
"""Python's operators on tiles, which Beta 1 has, by the language's names."""
_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
for _symbol, _method in _METHODS.items():
    setattr(NkiTensor, f"__{_method}__", _operator(_symbol))
    if _symbol not in ("<", "<=", ">", ">="):
        setattr(NkiTensor, f"__r{_method}__", _reversed_operator(_symbol))
