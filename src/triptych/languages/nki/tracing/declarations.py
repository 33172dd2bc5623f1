"""What a trace declares: the caller's tensors, tiles, tensors in HBM, views in other dtypes, registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from math import prod
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType, dtype_of
from triptych.core.errors import BudgetExceeded, NkiError, NkiLimitError
from triptych.core.handles import Handle
from triptych.core.settings import settings
from triptych.languages.calling import author_location, frames
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.buffers import Allocation, Buffer
from triptych.languages.nki.tracing.dtypes import Dtype, core_dtype
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensor_views import whole_region
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.views import View, pattern_of
from triptych.neuron.isa import Engine, Hardware, Region, Space, Tensor
from triptych.neuron.isa.state import STATE_DTYPES, STATE_SIZES

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer

_LARGEST_BYTES = 4 << 30
"""Of one tensor. Source: Neuron compiler error NCC_EVRF024."""
Position = tuple[int | None, int | None, int | None, int | None]
CallPath = tuple[tuple[CodeType, Position], ...]


class ParDim(int):
    """`nl.par_dim(n)`: marks the partition axis of a shape whose other axes in front of it are blocks."""


@dataclass(slots=True)
class Layout:
    """How the tiles of a shape and a dtype lie in a memory."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    partitions: int
    free: int
    blocks: int
    dtype: DType
    place: object = None
    """What the rules look at of an instruction's operand that is the whole of such a tile; None before there is one."""


@dataclass(slots=True)
class Declarations:
    """The tensors of the trace in the making of one kernel call."""

    kernel: str
    hardware: Hardware
    generation: str
    grid: tuple[int, ...]
    ranks: int = 1
    """Devices that run the grid each."""
    program: int = -1
    """The index of the program that is being traced: those of a rank, the grid's last axis fastest, then the next's."""
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    limit: int = field(default_factory=lambda: settings().trace_limit)
    """The instructions and tensors that the trace may have."""
    argument_ids: set[int] = field(default_factory=set[int])
    """The tensors that the caller gave."""
    declared_ids: set[int] = field(default_factory=set[int])
    """The tensors of `nl.ndarray`."""
    constants: list[tuple[NkiTensor, NDArray[Any]]] = field(default_factory=list[tuple[NkiTensor, NDArray[Any]]])
    """Tensors whose contents the kernel brings with it."""
    _shared: dict[tuple[CallPath, int], NkiTensor] = field(default_factory=dict[tuple[CallPath, int], NkiTensor])
    _shared_calls: Counter[CallPath] = field(default_factory=Counter[CallPath])
    _aliases: dict[tuple[int, Dtype], int] = field(default_factory=dict[tuple[int, Dtype], int])
    _states: dict[tuple[str, Engine], int] = field(default_factory=dict[tuple[str, Engine], int])
    _layouts: dict[object, Layout] = field(default_factory=dict[object, Layout])
    _recorded: int = 0

    @property
    def rank(self) -> int:
        """The device of that program."""
        return self.program // prod(self.grid)

    @property
    def recorded(self) -> int:
        """How many instructions and tensors it has."""
        return self._recorded

    def _tensor(self, view: View, dtype: Dtype, buffer: Buffer, name: str, *, writable: bool = True) -> NkiTensor:
        return NkiTensor(cast("Tracer", self), view, dtype, buffer, name, writable=writable)

    def argument(self, handle: Handle, name: str, dtype: Dtype, *, writable: bool) -> NkiTensor:
        """A tensor of the caller."""
        item = handle.dtype.bytes
        if any(stride % item for stride in handle.strides) or handle.size == 0:
            raise NkiError(f"argument `{name}` of shape {list(handle.shape)} is empty or has strides inside elements")
        steps = tuple(s // item if n > 1 else 0 for s, n in zip(handle.strides, handle.shape, strict=True))
        reach = [step * (count - 1) for step, count in zip(steps, handle.shape, strict=True)]
        self._check_size(handle.size, dtype, name)
        origin = -sum(one for one in reach if one < 0)
        size = origin + sum(one for one in reach if one > 0) + 1
        index = self._declare(Tensor(name, Space.HBM, handle.dtype, 1, size, handle.shape, steps, origin))
        self.argument_ids.add(index)
        view = View(index, origin, handle.shape, steps, None)
        return self._tensor(view, dtype, buffers.private_hbm, name, writable=writable)

    def _declare(self, tensor: Tensor) -> int:
        self._count()
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def allocate(
        self,
        shape: Sequence[int],
        dtype: Dtype,
        buffer: Buffer,
        name: str = "",
        *,
        zeroed: bool = False,
        address: tuple[int, int] | None = None,
    ) -> NkiTensor:
        """A new tensor; `address` is its first partition and its first byte of each, where the author chooses them.

        Raises:
            NkiLimitError: for more than 128 partitions, or more bytes than the memory has.
            NkiError: for an on-chip tensor of one dimension.
        """
        counts = tuple(shape)
        if counts and min(counts) < 1:
            raise refuse(f"a tensor of shape {[int(count) for count in counts]} is empty")
        label = name or f"{buffer.name}{len(self.tensors)}"
        if buffer.space.on_chip:
            made = self._tile(counts, dtype, buffer, label, zeroed)
            if address is not None:
                self._place(made, *address)
            elif buffer.allocation is not None:
                self._place_blocks(made, buffer.allocation)
            return made
        if address is not None:
            raise refuse(f"tensor `{label}`: address= is for SBUF and PSUM; HBM is the runtime's")
        return self._hbm(tuple(int(count) for count in counts), dtype, buffer, label)

    def _tile(self, counts: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str, zeroed: bool) -> NkiTensor:
        kinds = [*map(type, counts)]
        axis = kinds.index(ParDim) if ParDim in kinds else 0
        key = (counts, axis, dtype, id(buffer.space))
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(tuple(int(count) for count in counts), axis, dtype, buffer, name)
        tensor = Tensor(
            name, buffer.space, layout.dtype, layout.partitions, layout.free, layout.shape,
            zeroed=zeroed, blocks=layout.blocks,
        )  # fmt: skip
        index = self._declare(tensor)
        made = self._tensor(View(index, 0, layout.shape, layout.steps, axis), dtype, buffer, name)
        if axis == 0:
            if layout.place is None:
                layout.place = made.tracer.place_of(whole_region(made.elements))
            made.place = layout.place
        return made

    def _layout(self, shape: tuple[int, ...], axis: int, dtype: Dtype, buffer: Buffer, name: str) -> Layout:
        """How tiles of a shape lie, whose partition axis is `axis`."""
        if len(shape) - axis < 2:
            raise refuse(
                f"tensor `{name}` of shape {list(shape)}: SBUF and PSUM tensors must have at least 2 dimensions "
                "(partition-dim and free-dim)",
                "use a shape such as (128, 1) or (1, 128)",
            )
        self._check_tile(shape, axis, dtype, buffer, name)
        self._check_dtype(dtype, name)
        free = prod(shape) // shape[axis]
        others = [count for at, count in enumerate(shape) if at != axis]
        inner = [prod(others[at + 1 :]) for at in range(len(others))]
        steps = (*inner[:axis], free, *inner[axis:])
        return Layout(shape, steps, shape[axis], free, prod(shape[:axis]), core_dtype(dtype))

    def _place_blocks(self, made: NkiTensor, allocation: Allocation) -> None:
        """Put the blocks of a tensor where the author wants them; all must fit, and one that is alone stays there."""
        tensor, axis = made.declaration, made.elements.partition_axis or 0
        blocks = made.shape[:axis]
        size = tensor.bytes_per_partition // max(prod(blocks), 1)
        for block in np.ndindex(*blocks):
            partition, byte = allocation(block, tensor.partitions, size)
            self._check_place(tensor, partition, byte, size)
            if not blocks:
                self._place(made, partition, byte)

    def _place(self, tile: NkiTensor, partition: int, byte: int) -> None:
        """Put a tile where the author wants it."""
        tensor = tile.declaration
        self._check_place(tensor, partition, byte, tensor.bytes_per_partition)
        self.tensors[tile.elements.tensor] = replace(tensor, address=byte, start=partition)
        tile.place = None  # the rules look at its first partition

    def _check_place(self, tensor: Tensor, partition: int, byte: int, size: int) -> None:
        space = tensor.space.value.upper()
        sbuf = tensor.space is Space.SBUF
        capacity = self.hardware.sbuf_bytes_per_partition if sbuf else self.hardware.psum_bytes_per_partition
        end = byte + size
        if partition < 0 or partition + tensor.partitions > self.hardware.partitions or byte < 0 or end > capacity:
            raise NkiLimitError(
                f"tensor `{tensor.name}` at the address ({partition}, {byte}) takes partitions {partition} to "
                f"{partition + tensor.partitions - 1} and bytes {byte} to {end - 1}; {space} has "
                f"{self.hardware.partitions} of {capacity}",
                where=author_location(),
            )

    def _check_tile(self, shape: tuple[int, ...], partition_axis: int, dtype: Dtype, buffer: Buffer, name: str) -> None:
        limit = self.hardware.partitions
        if shape[partition_axis] > limit:
            raise NkiLimitError(
                f"partition dimension {shape[partition_axis]} of tensor `{name}` of shape {list(shape)} exceeds the "
                f"architecture limit of {limit} partitions (nl.tile_size.pmax)",
                where=author_location(),
                hint=f"loop over tiles of at most {limit} rows",
            )
        taken = prod(shape[partition_axis + 1 :]) * dtype.itemsize  # of a block: blocks come and go
        sbuf = buffer.space is Space.SBUF
        capacity = self.hardware.sbuf_bytes_per_partition if sbuf else self.hardware.psum_bytes_per_partition
        if taken > capacity:
            raise NkiLimitError(
                f"tensor `{name}` of shape {list(shape)} takes {taken} bytes of each {buffer.name.upper()} partition; "
                f"the limit is {capacity} on {self.hardware.target}",
                where=author_location(),
                hint="split its free dimension",
            )

    def _check_dtype(self, dtype: Dtype, name: str) -> None:
        """The dtypes of MX formats are NeuronCore-v4's."""
        kind = core_dtype(dtype)
        if (kind.packed or kind.name == "f8e8m0fnu") and self.hardware.core_generation < 4:
            raise NkiError(
                f"tensor `{name}` is {kind.label}, which needs NeuronCore-v4 (gen4) or later; "
                f"{self.hardware.target} has NeuronCore-v{self.hardware.core_generation}",
                where=author_location(),
            )

    def _check_size(self, elements: int, dtype: Dtype, name: str) -> None:
        taken = elements * dtype.itemsize
        if taken > _LARGEST_BYTES:
            raise NkiLimitError(
                f"tensor `{name}` takes {taken} bytes; the compiler's limit is {_LARGEST_BYTES} (NCC_EVRF024)",
                where=author_location(),
                hint="split it",
            )

    def _hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        if buffer.shared:
            return self._shared_hbm(shape, dtype, buffer, name)
        return self._new_hbm(shape, dtype, buffer, name)

    def _shared_hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        """Programs of a grid run the same Python: what the n-th run of a call makes in each is one and the same."""
        path = call_path()
        key = (path, self._shared_calls[path])
        self._shared_calls[path] += 1
        found = self._shared.get(key)
        if found is not None:
            if (found.shape, found.dtype) != (self._stacked(shape), dtype):
                raise refuse(f"shared tensor `{name}` of shape {list(shape)} differs between programs of the grid")
            return self._own(found)
        made = self._shared[key] = self._new_hbm(self._stacked(shape), dtype, buffer, name)
        return self._own(made)

    def _stacked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what all ranks have of a tensor: one behind the other."""
        return shape if self.ranks == 1 else (self.ranks, *shape)

    def _own(self, stacked: NkiTensor) -> NkiTensor:
        """What this rank has of it."""
        return stacked if self.ranks == 1 else stacked[self.rank]

    def _new_hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        self._check_dtype(dtype, name)
        self._check_size(prod(shape), dtype, name)
        steps = tuple(prod(shape[axis + 1 :]) if shape[axis] > 1 else 0 for axis in range(len(shape)))
        where = author_location() if buffer.shared else None
        tensor = Tensor(
            name, Space.HBM, core_dtype(dtype), 1, prod(shape), shape, steps, shared=buffer.shared, where=where
        )
        return self._tensor(View(self._declare(tensor), 0, shape, steps, None), dtype, buffer, name)

    def constant(self, array: NDArray[Any]) -> NkiTensor:
        """A tensor in HBM whose contents the kernel brings with it; programs of a grid share it."""
        path = call_path()
        key = (path, self._shared_calls[path])
        self._shared_calls[path] += 1
        if key not in self._shared:
            made = self._new_hbm(array.shape, array.dtype, buffers.private_hbm, f"constant{len(self.constants)}")
            self._shared[key] = made.with_view(made.elements, writable=False)
            self.constants.append((made, array))
        return self._shared[key]

    def alias(self, tensor: int, dtype: Dtype) -> int:
        """The bytes of a tensor as another dtype: the same tensor again, where that is its own dtype.

        Raises:
            NkiError: where the bytes of a partition are no whole number of elements.
        """
        viewed = self.tensors[tensor]
        root = tensor if viewed.alias is None else viewed.alias
        declared, kind = self.tensors[root], core_dtype(dtype)
        if declared.dtype == kind:
            return root
        found = self._aliases.get((root, dtype))
        if found is not None:
            return found
        if declared.bytes_per_partition % kind.bytes:
            raise refuse(
                f"tensor `{declared.name}` has {declared.bytes_per_partition} bytes in each partition: "
                f"no whole number of {kind.label}"
            )
        free = declared.bytes_per_partition // kind.bytes
        made = Tensor(
            declared.name, declared.space, kind, declared.partitions, free, (declared.partitions, free), alias=root
        )
        index = self._aliases[root, dtype] = self._declare(made)
        return index

    def register(self, name: str = "") -> VirtualRegister:
        """A new virtual register."""
        label = name or f"register{len(self.tensors)}"
        tensor = Tensor(label, Space.ENGINE, dtype_of("s32"), 1, 1, (1, 1))
        return VirtualRegister(cast("Tracer", self), self._declare(tensor))

    def state(self, name: str, engine: Engine, lanes: Region | None) -> Region:
        """The registers of that name of an engine, of the lanes that a tile lies in; None: of all."""
        key = (name, engine)
        free = STATE_SIZES[key]
        if key not in self._states:
            count = self.hardware.partitions
            label = f"{name} of the {engine.value} engine"
            tensor = Tensor(label, Space.ENGINE, dtype_of(STATE_DTYPES[name]), count, free, (count, free), zeroed=True)
            self._states[key] = self._declare(tensor)
        tile = None if lanes is None else self.tensors[lanes.tensor]
        first, count = (
            (0, self.hardware.partitions)
            if lanes is None or tile is None
            else (
                lanes.offset // tile.free,
                lanes.partitions,
            )
        )
        return Region(self._states[key], first * free, pattern_of((free, 1), (count, free)))

    def index_region(self, index: object, what: str) -> Region:
        """Where an index lies that is known only when the trace runs: in a register, or in a tile.

        Raises:
            NkiError: for anything else.
        """
        if isinstance(index, VirtualRegister):
            if index.tracer is not self:
                raise refuse(f"{what} is a register of another kernel")
            return index.region
        if not isinstance(index, NkiTensor):
            raise refuse(f"{what} is a {type(index).__name__}; expected a register or a tile of integers")
        if index.is_indirect():
            raise refuse(f"{what} is itself indexed indirectly")
        return whole_region(index.view_of)

    def _count(self) -> None:
        """One more instruction or tensor.

        Raises:
            BudgetExceeded: where they are more than the limit: most likely a loop of the kernel never ends.
        """
        self._recorded += 1
        if self._recorded > self.limit:
            raise BudgetExceeded(
                f"kernel {self.kernel}: its trace has more than {self.limit} instructions and tensors",
                where=author_location(),
                hint="does a loop of it ever end? TRIPTYCH_TRACE_LIMIT raises the limit",
                kernel=self.kernel,
            )


RUN_TRACED = "run_traced"
"""The function of `tracer.py` inside of which a kernel's Python runs."""


@lru_cache(4096)
def _positions(code: CodeType) -> tuple[Position, ...]:
    return tuple(code.co_positions())


def call_path() -> CallPath:
    """Which call of the kernel is running: the code, and the place in it, of each frame inside `run_traced`.

    The place is that of the source: Python's interpreter moves from instruction to instruction of a call as it learns.
    """
    inside = takewhile(lambda frame: frame.f_code.co_qualname != RUN_TRACED, frames())
    return tuple((frame.f_code, _positions(frame.f_code)[frame.f_lasti // 2]) for frame in inside)
