"""The views of a tensor: other shapes of the same elements, other dtypes of the same bytes. Nothing is copied."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Self, cast

from triptych.languages.nki.tracing.dtypes import Dtype, nki_dtype
from triptych.languages.nki.tracing.indexing import access_pattern, refuse, sequence, whole, whole_numbers
from triptych.languages.nki.tracing.views import View, reshaped_steps
from triptych.neuron.isa.trace import Dynamic, Indexing, Region

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer

_TWO_AXES = "SBUF and PSUM tensors must have at least 2 dimensions (partition-dim and free-dim)"


class TensorViews(ABC):
    """The methods of a tensor that give views of it."""

    __slots__ = ()

    name: str
    dtype: Dtype
    tracer: Tracer
    """The trace that the tensor belongs to."""

    @property
    @abstractmethod
    def view_of(self) -> View:
        """Its elements, all indices checked."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""

    @property
    @abstractmethod
    def on_chip(self) -> bool:
        """Whether it lies in SBUF or PSUM."""

    @property
    @abstractmethod
    def packed(self) -> bool:
        """Whether its tensor's elements lie one behind the other, in the order of the axes."""

    @abstractmethod
    def with_view(self, view: View, *, dtype: Dtype | None = None, writable: bool | None = None) -> Self:
        """Other elements of the same tensor."""

    @abstractmethod
    def __getitem__(self, key: object) -> Self:
        """A view by indices."""

    def _axis(self, axis: object, count: int, what: str) -> int:
        place = whole(axis)
        if place is None or not -count <= place < count:
            raise refuse(f"{what}: {axis!r} is no axis of `{self.name}` with shape {list(self.shape)}")
        return place % count

    def _free_axis(self, axis: object, what: str) -> int:
        place = self._axis(axis, len(self.shape), what)
        if self._fixed(place):
            raise refuse(f"{what}: axis {place} of `{self.name}` walks the partitions, or rows that indices choose")
        return place

    def _fixed(self, axis: int) -> bool:
        """Whether an axis must stay what it is."""
        view = self.view_of
        rows = view.dynamic is not None and view.dynamic.kind is not Indexing.SCALAR
        return axis == view.partition_axis or (rows and axis == 0)

    def reshape(self, shape: Sequence[int]) -> Self:
        """The same elements in another shape; on chip the partition axis stays as it is.

        Raises:
            NkiError: where the elements do not lie one behind the other, or the shape has more or fewer of them.
        """
        view = self.view_of
        new = whole_numbers(shape, f"the new shape of `{self.name}`")
        if prod(new) != prod(self.shape) or any(count < 1 for count in new):
            raise refuse(f"cannot reshape `{self.name}` of shape {list(self.shape)} into {list(new)}")
        if not self._fixed(0):
            return self.with_view(self._reshaped(view.shape, view.steps, new, ()))
        if not new or new[0] != self.shape[0] or (self.on_chip and len(new) < 2):
            raise refuse(
                f"cannot reshape `{self.name}` of shape {list(self.shape)} into {list(new)}: "
                "the partition axis of an on-chip tensor must stay the first and keep its size"
            )
        head = ((new[0], view.steps[0]),)
        return self.with_view(self._reshaped(view.shape[1:], view.steps[1:], new[1:], head))

    def _reshaped(
        self, old: tuple[int, ...], steps: tuple[int, ...], new: tuple[int, ...], head: Sequence[tuple[int, int]]
    ) -> View:
        view = self.view_of
        if view.partition_axis not in (None, 0):
            raise refuse(
                f"cannot reshape `{self.name}` of shape {list(self.shape)} into {list(new)}: "
                "the partition axis of an on-chip tensor must stay the first and keep its size"
            )
        fresh = reshaped_steps(old, steps, new)
        if fresh is None:
            raise refuse(f"cannot reshape `{self.name}`: its elements do not lie at equal steps")
        shape, all_steps = (*[count for count, _ in head], *new), (*[step for _, step in head], *fresh)
        return View(view.tensor, view.offset, shape, all_steps, view.partition_axis, (), view.dynamic)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> Self:
        """One axis split into several; one of the new sizes may be -1."""
        place = self._axis(dim, len(self.shape), "reshape_dim")
        sizes = list(whole_numbers(shape, f"the new sizes of axis {place} of `{self.name}`"))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = self.shape[place] // max(prod(one for one in sizes if one != -1), 1)
        if prod(sizes) != self.shape[place] or any(one < 1 for one in sizes):
            raise refuse(f"cannot split axis {place} of `{self.name}` with shape {list(self.shape)} into {list(shape)}")
        if len(sizes) > 1:
            self._free_axis(place, "reshape_dim")
        view = self.view_of
        inner = [view.steps[place] * prod(sizes[at + 1 :]) for at in range(len(sizes))]
        new_shape = (*view.shape[:place], *sizes, *view.shape[place + 1 :])
        steps = (*view.steps[:place], *inner, *view.steps[place + 1 :])
        return self.with_view(replace(view, shape=new_shape, steps=steps, ranges=()))

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Neighbouring axes `start_dim` to `end_dim` as one; their elements must lie at equal steps."""
        first = self._free_axis(start_dim, "flatten_dims")
        last = self._axis(end_dim, len(self.shape), "flatten_dims")
        if last < first:
            raise refuse(f"flatten_dims({start_dim}, {end_dim}) of `{self.name}`: the last axis comes before the first")
        view = self.view_of
        merged = self._reshaped(
            view.shape[first : last + 1], view.steps[first : last + 1], (prod(view.shape[first : last + 1]),), ()
        )
        shape = (*view.shape[:first], *merged.shape, *view.shape[last + 1 :])
        steps = (*view.steps[:first], *merged.steps, *view.steps[last + 1 :])
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=()))

    def broadcast_to(self, shape: Sequence[int]) -> Self:
        """A read-only view in which free axes of one element are repeated; partitions are not repeated by a view.

        Raises:
            NkiError: for a shape to which the tensor does not broadcast.
        """
        view = self.view_of
        new = whole_numbers(shape, f"the new shape of `{self.name}`")
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
        repeated = View(view.tensor, view.offset, new, tuple(steps), view.partition_axis, (), view.dynamic)
        return self.with_view(repeated, writable=False)

    def broadcast(self, dim: int | Sequence[int], size: int | None = None) -> Self:
        """`broadcast(dim, size)`: a free axis of one element repeated; Beta 1: `broadcast(shape)`."""
        if size is None:
            return self.broadcast_to(cast("Sequence[int]", dim))
        place = self._free_axis(dim, "broadcast")
        if self.shape[place] != 1:
            raise refuse(f"broadcast: axis {place} of `{self.name}` has {self.shape[place]} elements; expected 1")
        return self.broadcast_to((*self.shape[:place], size, *self.shape[place + 1 :]))

    def permute(self, dims: Sequence[int]) -> Self:
        """The axes in another order; on chip the partition axis stays the first."""
        view = self.view_of
        order = whole_numbers(dims, f"the order of the axes of `{self.name}`")
        if sorted(order) != list(range(len(view.shape))):
            raise refuse(f"{list(order)} is no order of the {len(view.shape)} axes of `{self.name}`")
        if self.on_chip and order[0] != view.partition_axis:
            raise refuse(f"the partition axis of `{self.name}` must stay the first", "transpose with nisa.nc_transpose")
        if self._fixed(0) and order[0] != 0:
            raise refuse(f"the rows of `{self.name}`, which indices choose, must stay the first axis")
        shape, steps = tuple(view.shape[axis] for axis in order), tuple(view.steps[axis] for axis in order)
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=()))

    def expand_dim(self, dim: int) -> Self:
        """A new axis of one element; on chip not before the partition axis."""
        view = self.view_of
        rank = len(view.shape)
        place = dim + rank + 1 if dim < 0 else dim
        if not (1 if self._fixed(0) else 0) <= place <= rank:
            raise refuse(f"cannot put a new axis at {dim} of `{self.name}` with shape {list(self.shape)}")
        shape, steps = list(view.shape), list(view.steps)
        shape.insert(place, 1)
        steps.insert(place, 0)
        return self.with_view(replace(view, shape=tuple(shape), steps=tuple(steps), ranges=()))

    def squeeze_dim(self, dim: int) -> Self:
        """Without an axis of one element; the partition axis stays."""
        view = self.view_of
        rank = len(view.shape)
        place = dim + rank if dim < 0 else dim
        if not 0 <= place < rank or self.shape[place] != 1 or self._fixed(place):
            raise refuse(f"cannot drop axis {dim} of `{self.name}` with shape {list(self.shape)}")
        shape = tuple(count for at, count in enumerate(view.shape) if at != place)
        steps = tuple(step for at, step in enumerate(view.steps) if at != place)
        if self.on_chip and len(shape) < 2:
            raise refuse(_TWO_AXES)
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=()))

    def rearrange(
        self, src_pattern: Sequence[object], dst_pattern: Sequence[object], fixed_sizes: Mapping[str, int] | None = None
    ) -> Self:
        """Axes split, reordered and joined by names: `rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})`."""
        source = [cast("list[str]", sequence(one)) for one in src_pattern]
        target = [cast("list[str]", sequence(one)) for one in dst_pattern]
        names = [name for group in source for name in group]
        wanted = [name for group in target for name in group]
        if len(source) != len(self.shape) or sorted(names) != sorted(wanted) or len(set(names)) != len(names):
            raise refuse(
                f"rearrange {src_pattern} to {dst_pattern} of `{self.name}` with shape {list(self.shape)}: expected a "
                "name or a group of names for each axis, and the same names once on both sides"
            )
        result, at = self, 0
        for group in source:
            sizes = [(fixed_sizes or {}).get(name, -1 if len(group) > 1 else result.shape[at]) for name in group]
            result = result.reshape_dim(at, sizes) if len(group) > 1 else result
            at += len(group)
        result = result.permute([names.index(name) for name in wanted])
        for at, group in enumerate(target):
            result = result.flatten_dims(at, at + len(group) - 1) if len(group) > 1 else result
        return result

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """The elements start, start + step … before end along one axis."""
        place = self._axis(dim, len(self.shape), "slice")
        return self[(*[slice(None)] * place, slice(start, end, step))]

    def select(self, dim: int, index: object) -> Self:
        """One element along an axis, which goes: by a whole number, a register, or a tile of one element."""
        place = self._axis(dim, len(self.shape), "select")
        return self[(*[slice(None)] * place, index)]

    def get_pattern(self) -> list[list[int]]:
        """[[step, count], …], an entry an axis."""
        view = self.view_of
        return [[step, count] for step, count in zip(view.steps, view.shape, strict=True)]

    def is_contiguous(self) -> bool:
        """Whether the elements lie one behind the other; on chip those of each partition."""
        expected = 1
        for axis in reversed(range(len(self.shape))):
            count, step = self.shape[axis], self.view_of.steps[axis]
            if axis != self.view_of.partition_axis and count > 1:
                if step != expected:
                    return False
                expected *= count
        return True

    def is_indirect(self) -> bool:
        """Whether indices that are known only when the kernel runs choose its elements."""
        return self.view_of.dynamic is not None

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: object = None,
        vector_offset: object = None,
        indirect_dim: int = 0,
        dtype: object = None,
    ) -> Self:
        """The elements of an explicit access pattern [[step, count], …] over the tensor's storage, from `offset` on.

        `scalar_offset` (a register or a tile of one element) moves it along the axis `indirect_dim`; `vector_offset` (a
        tile [P, 1]) has an index for each of its rows along axis 0 in HBM. An index may go beyond its axis, as AWS's
        paged caches do: the storage is what it must stay in. `dtype` reinterprets the bytes.
        """
        if scalar_offset is not None and vector_offset is not None:
            raise refuse(f"ap() of `{self.name}`: scalar_offset and vector_offset exclude each other")
        view = self.view_of
        pairs = access_pattern(pattern, f"the access pattern of `{self.name}`")
        (first,) = whole_numbers([offset or 0], f"the offset of the access pattern of `{self.name}`")
        shape, steps = tuple(count for _, count in pairs), tuple(step for step, _ in pairs)
        if self.on_chip and len(shape) < 2:
            raise refuse(_TWO_AXES)
        if not self.packed:
            raise refuse(f"ap() of `{self.name}`, whose elements do not lie one behind the other", "give a copy of it")
        base, tensor, kind = view, view.tensor, self.dtype
        if dtype is not None and nki_dtype(dtype) != self.dtype:
            kind = nki_dtype(dtype)
            tensor, base = self._reinterpreted(kind)
        if self.on_chip:
            first, steps = _by_partitions(base, first, steps)
        moved = View(tensor, base.offset + first, shape, steps, 0 if self.on_chip else None)
        index = scalar_offset if vector_offset is None else vector_offset
        if index is None:
            return self.with_view(replace(moved, dynamic=view.dynamic), dtype=kind)
        axis = self._axis(indirect_dim, len(view.shape), "ap(indirect_dim=…)")
        if vector_offset is not None and (axis != 0 or self.on_chip):
            raise refuse(f"ap() of `{self.name}`: vector_offset needs indirect_dim=0 and a tensor in HBM")
        if vector_offset is None:
            self._refuse_partition_offset(axis)
        way = Indexing.SCALAR if vector_offset is None else Indexing.ROWS
        whole, step = self.tracer.tensors[tensor], base.steps[axis]
        within = whole.free if self.on_chip else whole.size
        dynamic = self._dynamic(way, index, step, -(-within // step) if step else view.shape[axis])
        return self.with_view(replace(moved, dynamic=dynamic), dtype=kind)

    def _refuse_partition_offset(self, axis: int) -> None:
        if axis == self.view_of.partition_axis:
            raise refuse(
                f"`{self.name}`: an index that is known only when the kernel runs cannot choose partitions",
                "place what is chosen along a free axis, or keep it in HBM",
            )

    def _dynamic(self, kind: Indexing, index: object, step: int, extent: int) -> Dynamic:
        """The indices that a register or a tile holds."""
        if self.is_indirect():
            raise refuse(
                f"`{self.name}` is indexed indirectly already", "one index that is known only later for a view"
            )
        return Dynamic(kind, self.tracer.index_region(index, f"the index of `{self.name}`"), step, extent)

    def vector_select(self, dim: int, vector_offset: object) -> Self:
        """Rows of an HBM tensor, chosen by the indices of a tile [P, 1]: axis 0 gets P rows."""
        if dim != 0 or self.on_chip:
            raise refuse(f"vector_select of `{self.name}`: dim must be 0, and the tensor in HBM")
        view = self.view_of
        dynamic = self._dynamic(Indexing.ROWS, vector_offset, view.steps[0], view.shape[0])
        rows = prod(count for _, count in dynamic.index.pattern)
        return self.with_view(replace(view, shape=(rows, *view.shape[1:]), ranges=(), dynamic=dynamic))

    def indirect(self, index: object, num_elem: int | None = None) -> Self:
        """Columns of a tile by free offsets, a tile [P, K] of them: 16 (Tensor engine: 32) partitions share theirs.

        NeuronCore-v4 and later.
        """
        view = self.view_of
        if not self.on_chip or view.partition_axis != 0:
            raise refuse(f"`{self.name}`: .indirect is for tiles in SBUF and PSUM")
        dynamic = self._dynamic(Indexing.COLUMNS, index, 1, prod(view.shape[1:]))
        count = prod(count for _, count in dynamic.index.pattern) if num_elem is None else whole(num_elem)
        if count is None or count < 1:
            raise refuse(f"`{self.name}`.indirect: num_elem={num_elem!r} is no number of elements")
        if not self.is_contiguous():
            raise refuse(f"`{self.name}`.indirect: the elements of a partition must lie one behind the other")
        shape, steps = (view.shape[0], count), (view.steps[0], 0)
        return self.with_view(replace(view, shape=shape, steps=steps, ranges=(), dynamic=dynamic))

    def view(self, dtype: object) -> Self:
        """The same bytes as another dtype; the last axis grows or shrinks by the ratio of the sizes.

        Raises:
            NkiError: where the last axis is not contiguous, or its bytes are no whole number of elements.
        """
        kind = nki_dtype(dtype)
        if kind == self.dtype:
            return self
        if self.is_indirect():
            raise refuse(f"`{self.name}` is indexed indirectly: its bytes cannot be viewed as {kind.name}")
        return self.with_view(self._reinterpreted(kind)[1], dtype=kind)

    reinterpret_cast = view

    def _reinterpreted(self, kind: Dtype) -> tuple[int, View]:
        """The tensor of the other dtype, and this view in its elements."""
        view, old, new = self.view_of, self.dtype.itemsize, kind.itemsize
        tensor = self.tracer.alias(view.tensor, kind)
        last = len(view.shape) - 1
        counts = [count * old for count in view.shape[last:]]
        inner = not view.shape or view.partition_axis == last or (view.shape[last] > 1 and view.steps[last] != 1)
        others = [view.offset * old, *(step * old for step in view.steps[:last])]
        if inner or any(one % new for one in (*counts, *others)):
            raise refuse(
                f"`{self.name}` of {self.dtype.name} and shape {list(view.shape)} cannot be viewed as {kind.name}: the "
                "last axis must be contiguous and hold a whole number of elements"
            )
        shape = (*view.shape[:last], counts[0] // new)
        steps = (*(step * old // new for step in view.steps[:last]), 1)
        return tensor, replace(
            view, tensor=tensor, offset=view.offset * old // new, shape=shape, steps=steps, ranges=()
        )


def _by_partitions(view: View, first: int, steps: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """An access pattern's offset and steps on a part of a tile: all its free elements on is its next partition.

    So counts AWS's library, from the shape of the part; a first step of another size counts from the whole tile.
    """
    sizes, free = view.shape[1:], prod(view.shape[1:])
    if view.partition_axis != 0 or steps[0] != free or reshaped_steps(sizes, view.steps[1:], (free,)) != (1,):
        return first, steps
    partition, element = divmod(first, free)
    return partition * view.steps[0] + element, (view.steps[0], *steps[1:])


def whole_region(view: View) -> Region:
    """The region of a view that no index moves."""
    return Region(view.tensor, view.offset, tuple(zip(view.steps, view.shape, strict=True)))
