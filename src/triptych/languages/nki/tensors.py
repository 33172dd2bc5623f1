"""Tensors as a kernel sees them while it is traced: shape, dtype and memory; no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NoReturn

from triptych.core.errors import UnknownNkiName
from triptych.languages.calling import author_location
from triptych.languages.nki.buffers import Buffer
from triptych.languages.nki.dtypes import Dtype
from triptych.languages.nki.indexing import IndexTile, access_pattern, join_shapes, refuse, whole, whole_numbers
from triptych.languages.nki.operators import STEERING, TileOperators
from triptych.languages.nki.views import AxisRange, View, expand_index, out_of_bounds, slice_of
from triptych.neuron.isa import Tensor

if TYPE_CHECKING:
    from triptych.languages.nki.tracer import Tracer


class NkiTensor(TileOperators):
    """A tensor, or a view of one. Supports basic slicing and index tiles; its values exist only when the trace runs."""

    __slots__ = ("_tracer", "_view", "buffer", "dtype", "name", "producer", "writable")

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

    @property
    def tracer(self) -> Tracer:
        """The trace that it belongs to."""
        return self._tracer

    @property
    def view(self) -> View:
        """Its elements."""
        if self._view.tensor in self._tracer.accumulated:
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

    @property
    def is_argument(self) -> bool:
        """Whether the caller gave it."""
        return self._view.tensor in self._tracer.argument_ids

    @property
    def declaration(self) -> Tensor:
        """The tensor that it views."""
        return self._tracer.tensors[self._view.tensor]

    @property
    def whole(self) -> bool:
        """Whether it views all of its tensor, in its order."""
        return self.shape == self.declaration.shape and self.size == self.declaration.size

    def __len__(self) -> int:
        """Elements along the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Name, shape, dtype and memory."""
        return f"NkiTensor({self.name}, shape={list(self.shape)}, dtype={self.dtype}, buffer={self.buffer})"

    def with_view(self, view: View) -> NkiTensor:
        """Other elements of the same tensor."""
        return NkiTensor(self._tracer, view, self.dtype, self.buffer, self.name, writable=self.writable)

    def __getitem__(self, key: object) -> NkiTensor:
        """A view: by whole numbers, slices, `nl.ds` and `...`, or by index tiles (`nl.arange`, `nl.mgrid`).

        Raises:
            NkiLimitError: for an index outside the tensor.
            NkiError: for an index that NKI does not take.
        """
        keys = expand_index(key, self.ndim, self.name)
        if any(isinstance(one, IndexTile) for one in keys):
            self._tracer.note_legacy("index tiles (nl.arange, nl.mgrid)")
            return self.with_view(self._by_tiles(keys))
        return self.with_view(self._by_slices(keys))

    def _by_slices(self, keys: Sequence[object]) -> View:
        self.check_ranges(self.view)
        offset, shape, steps = self._view.offset, list[int](), list[int]()
        partition_axis: int | None = None
        for axis, (one, count, step) in enumerate(zip(keys, self.shape, self._view.steps, strict=True)):
            first, stride, number = slice_of(one, axis, count, self.name)
            offset += step * first
            is_partition = axis == self._view.partition_axis
            if whole(one) is not None and not is_partition:
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
        if any(not isinstance(one, IndexTile) and whole(one) is None for one in keys):
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
            one.spread(shape) if isinstance(one, IndexTile) else IndexTile(shape, whole(one) or 0, (0,) * len(shape))
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

    def reshape(self, shape: Sequence[int]) -> NkiTensor:
        """The same elements in another shape; on chip the partition axis stays as it is.

        Raises:
            NkiError: where the elements do not lie one behind the other, or the shape has more or fewer of them.
        """
        self.check_ranges(self.view)
        new = whole_numbers(shape, f"the new shape of `{self.name}`")
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
        new = whole_numbers(shape, f"the new shape of `{self.name}`")
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
        order = whole_numbers(axes, f"the order of the axes of `{self.name}`")
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
        pairs = access_pattern(pattern, f"the access pattern of `{self.name}`")
        (first,) = whole_numbers([offset], f"the offset of the access pattern of `{self.name}`")
        shape, steps = tuple(count for _, count in pairs), tuple(step for step, _ in pairs)
        if self.on_chip and len(shape) < 2:
            raise refuse("SBUF and PSUM tensors must have at least 2 dimensions (partition-dim and free-dim)")
        axis = 0 if self.on_chip else None
        return self.with_view(View(self._view.tensor, self._view.offset + first, shape, steps, axis))

    def __bool__(self) -> bool:
        """Never: values are not known while a kernel is traced."""
        raise refuse(
            f"control flow depends on the value of tensor `{self.name}`: values are not known while a kernel is traced",
            STEERING,
        )

    def _no_number(self) -> NoReturn:
        raise refuse(
            f"a number is wanted, and tensor `{self.name}` given: its values are not known while a kernel is traced",
            f"use an extent, as in range(tensor.shape[0]), which is {self.shape[0]} here, or a plain argument",
        )

    def __index__(self) -> int:
        """Never: a tensor is no number."""
        self._no_number()

    def __int__(self) -> int:
        """Never: a tensor is no number."""
        self._no_number()

    def __float__(self) -> float:
        """Never: a tensor is no number."""
        self._no_number()

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
        raise UnknownNkiName.of("attribute of NkiTensor", name, _public_names(), author_location())


def _public_names() -> list[str]:
    return [name for name in dir(NkiTensor) if not name.startswith("_")]
