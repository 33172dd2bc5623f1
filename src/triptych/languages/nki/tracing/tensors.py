"""Tensors as a kernel sees them while it is traced: shape, dtype and memory; no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

from triptych.core.errors import UnknownNkiName
from triptych.languages.calling import author_location
from triptych.languages.nki.tracing.buffers import Buffer, sbuf
from triptych.languages.nki.tracing.dtypes import Dtype, nki_dtype
from triptych.languages.nki.tracing.indexing import Cut, Ds, IndexTile, Mask, join_shapes, refuse, whole
from triptych.languages.nki.tracing.operators import STEERING, TileOperators
from triptych.languages.nki.tracing.quick_views import sliced, tiled
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensor_views import TensorViews
from triptych.languages.nki.tracing.views import (
    AxisRange,
    View,
    expand_index,
    out_of_bounds,
    reshaped_steps,
    slice_of,
)
from triptych.neuron.isa import Region, Tensor
from triptych.neuron.isa.trace import BETA1, Dynamic, Indexing

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer


class NkiTensor(TileOperators, TensorViews):
    """A tensor, or a view of one. Supports basic slicing and index tiles; its values exist only when the trace runs."""

    __slots__ = ("_view", "buffer", "dtype", "moves", "name", "place", "producer", "region", "tracer", "writable")

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
        self.tracer = tracer
        self._view = view
        self.dtype = dtype
        self.buffer = buffer
        self.name = name
        self.writable = writable
        self.producer = producer
        self.moves: IndexTile | None = None
        """Of an index: what its one element moves."""
        self.region: Region | None = None
        """What instructions name it by, where one has."""
        self.place: object = None
        """What the rules look at of that; None where it is not known."""

    @property
    def view_of(self) -> View:
        """Its elements, all indices checked."""
        elements = self.elements
        if elements.ranges:
            self.check_ranges(elements)
        return elements

    @property
    def elements(self) -> View:
        """Its elements."""
        if self._view.tensor in self.tracer.accumulated:
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
        return self._view.tensor in self.tracer.argument_ids

    @property
    def declaration(self) -> Tensor:
        """The tensor that it views."""
        return self.tracer.tensors[self._view.tensor]

    @property
    def whole(self) -> bool:
        """Whether it views all of its tensor, in its order."""
        return self.shape == self.declaration.shape and self.size == self.declaration.size

    @property
    def whole_of_rank(self) -> bool:
        """Whether it views all that a rank has of its tensor: of one in HBM, the first axis of which is the ranks'."""
        ranks_first = self.tracer.ranks > 1 and not self.on_chip
        return self.whole or (ranks_first and self.shape == self.declaration.shape[1:])

    @property
    def packed(self) -> bool:
        """Whether its tensor's elements lie one behind the other, in the order of the axes."""
        tensor = self.declaration
        return not tensor.strides or reshaped_steps(tensor.shape, tensor.strides, (tensor.size,)) == (1,)

    @property
    def reshaped_whole(self) -> bool:
        """Whether it views all that its rank has of its tensor in HBM, in its order, in whatever shape."""
        view = self._view
        order = zip(view.steps, view.shape, range(self.ndim), strict=True)
        own = self.declaration.size == self.size * self.tracer.ranks
        known = own and view.offset % self.size == 0 and view.dynamic is None
        return known and not self.on_chip and all(n == 1 or step == prod(self.shape[at + 1 :]) for step, n, at in order)

    def __len__(self) -> int:
        """Elements along the first axis."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Name, shape, dtype and memory."""
        return f"NkiTensor({self.name}, shape={list(self.shape)}, dtype={self.dtype}, buffer={self.buffer})"

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def broadcast_to(self, shape: Sequence[int]) -> NkiTensor:
        """The elements repeated to a larger shape: free axes by a view; a single partition, under Beta 1, by a copy.

        Raises:
            NkiError: for a shape to which the tensor does not broadcast.
        """
        single = self.on_chip and self.shape[0] == 1 and len(shape) == self.ndim and shape[0] != 1
        if single and self.tracer.generation == BETA1:
            return self.tracer.binary["broadcast_to"](self, shape)
        return super().broadcast_to(shape)

    def moving(self, index: IndexTile) -> NkiTensor:
        """Beta 1's index `tile + nl.arange(…)`: one element of a tile moves an index tile."""
        if self.size != 1:
            raise refuse(f"an index moved by `{self.name}` of shape {list(self.shape)}; expected one element")
        made = self.with_view(self.elements)
        made.moves = index if self.moves is None else self.moves + index
        return made

    def assert_shape(self, shape: Sequence[int]) -> NkiTensor:
        """The tensor itself, which must have this shape (Beta 1)."""
        if tuple(shape) != self.shape:
            raise refuse(f"`{self.name}` has the shape {list(self.shape)}; assert_shape expected {list(shape)}")
        return self

    def astype(self, dtype: object) -> NkiTensor:
        """A copy of a tile in another dtype (Beta 1)."""
        made = self.tracer.allocate(self.shape, nki_dtype(dtype), sbuf)
        self.tracer.emit("tensor_copy", {"dst": made, "src": self})
        return made

    def expand_dims(self, axis: int) -> NkiTensor:
        """A view with a new axis of one element (Beta 1)."""
        return self.expand_dim(axis)

    def with_view(self, view: View, *, dtype: Dtype | None = None, writable: bool | None = None) -> NkiTensor:
        """Other elements of the same tensor; in another dtype `view.tensor` says how its bytes are viewed."""
        return NkiTensor(
            self.tracer,
            view,
            self.dtype if dtype is None else dtype,
            self.buffer,
            self.name,
            writable=self.writable if writable is None else writable and self.writable,
        )

    def part(self, cut: Cut) -> NkiTensor:
        """The view of what a mask leaves of the leading axes."""
        made = self.with_view(self.elements.cut(cut))
        made.producer = self.producer
        return made

    def __getitem__(self, key: Any) -> NkiTensor:  # noqa: ANN401  # anything; as an object it would be cast each time
        """A view: by whole numbers, slices, `nl.ds` and `...`, or by index tiles (`nl.arange`, `nl.mgrid`).

        Raises:
            NkiLimitError: for an index outside the tensor.
            NkiError: for an index that NKI does not take.
        """
        view = self._view
        tracer = self.tracer
        keys: Sequence[Any] = key if key.__class__ is tuple else (key,)
        if view.dynamic is None and not view.ranges and view.tensor not in tracer.accumulated:
            found = None if keys and type(keys[0]) is IndexTile else sliced(view, keys)
            if found is None and (found := tiled(view, keys)) is not None:
                tracer.note_legacy("index tiles (nl.arange, nl.mgrid)")
            if found is not None:
                return NkiTensor(tracer, found, self.dtype, self.buffer, self.name, writable=self.writable)
        if isinstance(key, Mask):
            return MaskedTile(self, self.tracer.cut(key, self.shape))
        keys = expand_index(key, self.ndim, self.name)
        if any(isinstance(one, IndexTile) or (isinstance(one, NkiTensor) and one.moves is not None) for one in keys):
            self.tracer.note_legacy("index tiles (nl.arange, nl.mgrid)")
            return self.with_view(self._by_tiles(keys))
        return self.with_view(self._by_slices(keys))

    def _by_slices(self, keys: Sequence[object]) -> View:
        view = self.view_of
        offset, shape, steps = view.offset, list[int](), list[int]()
        partition_axis, dynamic = None, view.dynamic
        for axis, (one, count, step) in enumerate(zip(keys, self.shape, view.steps, strict=True)):
            later = _known_later(one)
            if later is None:
                first, stride, number = slice_of(one, axis, count, self.name)
            else:
                first, stride, number = 0, 1, later[1]
                dynamic = self._moved(later[0], axis, step, count, number)
            self._check_axis(one, axis, count)
            offset += step * first
            is_partition = axis == view.partition_axis
            if (whole(one) is not None or (later is not None and not isinstance(one, Ds))) and not is_partition:
                continue
            if is_partition:
                partition_axis = len(shape)
            shape.append(number)
            steps.append(step * stride)
        if self.on_chip and len(shape) == 1:
            shape.append(1)
            steps.append(1)
        return View(view.tensor, offset, tuple(shape), tuple(steps), partition_axis, (), dynamic)

    def _check_axis(self, key: object, axis: int, count: int) -> None:
        """An axis whose elements indices choose stays whole."""
        if self._fixed(axis) and axis != self._view.partition_axis and key != slice(None):
            raise refuse(f"axis {axis} of `{self.name}`, whose {count} rows indices choose, cannot be sliced")

    def _moved(self, index: object, axis: int, step: int, count: int, number: int) -> Dynamic:
        self._refuse_partition_offset(axis)
        if not 1 <= number <= count:
            raise out_of_bounds(self.name, axis, 0, number - 1, count)
        return self._dynamic(Indexing.SCALAR, index, step, count - number + 1)

    def _by_tiles(self, keys: Sequence[object]) -> View:
        if any(isinstance(one, NkiTensor) and (at or self.on_chip or one.moves) for at, one in enumerate(keys)):
            return self._by_moved_tiles(keys)
        if any(isinstance(one, NkiTensor) for one in keys):
            return self._by_rows(keys)
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

    def _by_moved_tiles(self, keys: Sequence[object]) -> View:
        """Index tiles of which the element of a tile moves one, along an axis that is no partition axis."""
        at = next(axis for axis, one in enumerate(keys) if isinstance(one, NkiTensor))
        index = keys[at]
        assert isinstance(index, NkiTensor)
        moved = index.moves if index.moves is not None else IndexTile((1,), 0, (0,))
        low, high = moved.bounds()
        if low < 0 or high >= self.shape[at]:
            raise out_of_bounds(self.name, at, low, high, self.shape[at])
        self._refuse_partition_offset(at)
        dynamic = self._dynamic(Indexing.SCALAR, index, self.strides[at], self.shape[at] - high)
        static: object = 0 if index.moves is None else index.moves
        return replace(self._by_tiles([*keys[:at], static, *keys[at + 1 :]]), dynamic=dynamic)

    def _by_rows(self, keys: Sequence[object]) -> View:
        """Beta 1's indirect index: a tile [P, 1] chooses the rows of an HBM tensor, index tiles its columns."""
        rows = [at for at, one in enumerate(keys) if isinstance(one, NkiTensor)]
        if self.on_chip or rows != [0]:
            raise refuse(
                f"tensor `{self.name}`: a tile of indices may choose along the first axis of a tensor in HBM alone",
                "nl.gather_flattened gathers within the partitions of a tile",
            )
        index = keys[0]
        assert isinstance(index, NkiTensor)
        if index.size != index.shape[0]:
            raise refuse(f"tensor `{self.name}`: indices of shape {list(index.shape)}; expected [P, 1]")
        count = index.shape[0]
        rank = max([2, *(len(one.shape) for one in keys if isinstance(one, IndexTile))])
        lines = IndexTile((count, *[1] * (rank - 1)), 0, (0,) * rank)
        inner = self[0].with_view(replace(self[0].elements, shape=(1, *self.shape[1:]), steps=(0, *self.strides[1:])))
        view = inner.with_view(inner._by_tiles([lines, *keys[1:]])).elements
        dynamic = self._dynamic(Indexing.ROWS, index, self.strides[0], self.shape[0])
        return replace(view, shape=(count, *view.shape[1:]), dynamic=dynamic)

    def _gather(self, indices: Sequence[IndexTile], shape: tuple[int, ...]) -> View:
        view = self.view_of
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
        self.tracer.assign(self[key], value)

    def __iadd__(self, value: object) -> NkiTensor:
        """Beta 1's accumulation: `psum += nisa.nc_matmul(…)`."""
        return self.tracer.accumulate(self, value)

    def __bool__(self) -> bool:
        """Whether there is a tensor, as kernels ask of one that may be None; what it holds is not known while traced.

        Raises:
            NkiError: where the author may mean a value: for one element, a part, or the result of a function; in
                Beta 1 for all but arguments, of which AWS's examples ask so (its `err_ambiguous_tensor_truth_value`).
        """
        in_beta1 = self.tracer.generation == BETA1
        declared = self.is_argument or (self._view.tensor in self.tracer.declared_ids and not in_beta1)
        if declared and self.whole_of_rank and self.size > 1:
            return True
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


class MaskedTile(NkiTensor):
    """Beta 1's operand mask, `tile[i_f < n]`: a tile of which a product takes a part, in the place it has."""

    __slots__ = ("cut", "tile")

    def __init__(self, tile: NkiTensor, cut: Cut | None) -> None:
        """`cut` is what the mask lets through: () for all of it, None for nothing."""
        super().__init__(tile.tracer, tile.elements, tile.dtype, tile.buffer, tile.name, writable=False)
        self.tile = tile
        self.cut = cut

    @property
    def elements(self) -> View:
        """Never: only a product knows what it takes of them."""
        raise refuse(
            f"a mask as an index of `{self.name}` is for the operands of nl.matmul and nisa.nc_matmul alone",
            "other functions take mask=",
        )


def _known_later(key: object) -> tuple[object, int] | None:
    """The index and the number of elements of a key that names a register or a tile; None for other keys."""
    if isinstance(key, Ds):
        return None if whole(key.start) is not None else (key.start, key.size)
    return (key, 1) if isinstance(key, VirtualRegister | NkiTensor) else None


def _public_names() -> list[str]:
    return [name for name in dir(NkiTensor) if not name.startswith("_")]
