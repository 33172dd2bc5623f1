"""The tracer: runs a kernel's Python over tensors without data and records the instructions that it issues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import prod
from types import CodeType

import numpy as np

from triptych.core.checks import GENERATION
from triptych.core.errors import BudgetExceeded, NkiError, NkiLimitError
from triptych.core.handles import Handle
from triptych.core.launches import Finding
from triptych.core.settings import settings
from triptych.core.source import SourceLocation
from triptych.languages.calling import author_location, frames
from triptych.languages.nki import buffers
from triptych.languages.nki.buffers import Buffer
from triptych.languages.nki.dtypes import Dtype, core_dtype
from triptych.languages.nki.fold import fold_copies
from triptych.languages.nki.indexing import Cut, Mask, number, refuse, whole
from triptych.languages.nki.operators import COMPARISONS, OPERATORS, STEERING
from triptych.languages.nki.spinning import stopped_where_it_spins
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.views import View
from triptych.neuron.isa import ROWS, Engine, Hardware, Instruction, Region, Space, Tensor, Trace, verify
from triptych.neuron.isa.occupancy import verify_capacity
from triptych.neuron.isa.row import OperandRule, Row
from triptych.neuron.isa.trace import AttributeValue, Operand

BETA1 = "beta1"
CURRENT = "current"

CallPath = tuple[tuple[CodeType, int], ...]
TileOrNumber = NkiTensor | float
Binary = Callable[[object, object], NkiTensor]


class ParDim(int):
    """`nl.par_dim(n)`: marks the partition axis of a shape whose other axes in front of it are blocks."""


@dataclass(slots=True)
class Tracer:
    """The trace in the making of one kernel call."""

    kernel: str
    hardware: Hardware
    generation: str
    grid: tuple[int, ...]
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    programs: list[list[Instruction]] = field(default_factory=list[list[Instruction]])
    binary: Mapping[str, Binary] = field(default_factory=dict[str, Binary])
    """The language's element-wise functions, for Python's operators on tiles."""
    limit: int = field(default_factory=lambda: settings().trace_limit)
    """The instructions and tensors that the trace may have."""
    argument_ids: set[int] = field(default_factory=set[int])
    """The tensors that the caller gave."""
    accumulated: set[int] = field(default_factory=set[int])
    """The products that `+=` sent elsewhere: nothing writes them any more."""
    _legacy: dict[str, SourceLocation] = field(default_factory=dict[str, SourceLocation])
    _shared: dict[tuple[CallPath, int], NkiTensor] = field(default_factory=dict[tuple[CallPath, int], NkiTensor])
    _shared_calls: Counter[CallPath] = field(default_factory=Counter[CallPath])
    _recorded: int = 0
    _assignments: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    @property
    def program(self) -> int:
        """The index of the program that is being traced, the grid's last axis fastest."""
        return len(self.programs) - 1

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions of that program so far."""
        return self.programs[-1]

    @property
    def recorded(self) -> int:
        """How many instructions and tensors it has."""
        return self._recorded

    def start_program(self) -> None:
        """Begin the next program of the grid."""
        self.programs.append([])
        self._shared_calls.clear()

    def program_ids(self) -> tuple[int, ...]:
        """The place of the current program in the grid."""
        return tuple(int(one) for one in np.unravel_index(self.program, self.grid))

    def note_legacy(self, feature: str) -> None:
        """Note the use of a feature that `import nki` does not have in any release."""
        if self.generation == CURRENT:
            self._legacy.setdefault(feature, author_location())

    def argument(self, handle: Handle, name: str, dtype: Dtype, *, writable: bool) -> NkiTensor:
        """A tensor of the caller."""
        item = handle.dtype.bytes
        if any(stride % item for stride in handle.strides) or handle.size == 0:
            raise NkiError(f"argument `{name}` of shape {list(handle.shape)} is empty or has strides inside elements")
        steps = tuple(s // item if n > 1 else 0 for s, n in zip(handle.strides, handle.shape, strict=True))
        reach = [step * (count - 1) for step, count in zip(steps, handle.shape, strict=True)]
        origin = -sum(one for one in reach if one < 0)
        size = origin + sum(one for one in reach if one > 0) + 1
        index = self._declare(Tensor(name, Space.HBM, handle.dtype, 1, size, handle.shape, steps, origin))
        self.argument_ids.add(index)
        view = View(index, origin, handle.shape, steps, None)
        return NkiTensor(self, view, dtype, buffers.private_hbm, name, writable=writable)

    def _declare(self, tensor: Tensor) -> int:
        self._count()
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def allocate(
        self, shape: Sequence[int], dtype: Dtype, buffer: Buffer, name: str = "", *, zeroed: bool = False
    ) -> NkiTensor:
        """A new tensor.

        Raises:
            NkiLimitError: for more than 128 partitions, or more bytes than the memory has.
            NkiError: for an on-chip tensor of one dimension.
        """
        counts = tuple(shape)
        if any(int(count) < 1 for count in counts):
            raise refuse(f"a tensor of shape {[int(count) for count in counts]} is empty")
        label = name or f"{buffer.name}{len(self.tensors)}"
        if buffer.space.on_chip:
            return self._tile(counts, dtype, buffer, label, zeroed)
        return self._hbm(tuple(int(count) for count in counts), dtype, buffer, label)

    def _tile(self, counts: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str, zeroed: bool) -> NkiTensor:
        shape = tuple(int(count) for count in counts)
        marked = [axis for axis, count in enumerate(counts) if isinstance(count, ParDim)]
        partition_axis = marked[0] if marked else 0
        if len(shape) - partition_axis < 2:
            raise refuse(
                f"tensor `{name}` of shape {list(shape)}: SBUF and PSUM tensors must have at least 2 dimensions "
                "(partition-dim and free-dim)",
                "use a shape such as (128, 1) or (1, 128)",
            )
        self._check_tile(shape, partition_axis, dtype, buffer, name)
        free = prod(shape) // shape[partition_axis]
        others = [count for axis, count in enumerate(shape) if axis != partition_axis]
        inner = [prod(others[axis + 1 :]) for axis in range(len(others))]
        steps = (*inner[:partition_axis], free, *inner[partition_axis:])
        tensor = Tensor(name, buffer.space, core_dtype(dtype), shape[partition_axis], free, shape, zeroed=zeroed)
        return NkiTensor(self, View(self._declare(tensor), 0, shape, steps, partition_axis), dtype, buffer, name)

    def _check_tile(self, shape: tuple[int, ...], partition_axis: int, dtype: Dtype, buffer: Buffer, name: str) -> None:
        limit = self.hardware.partitions
        if shape[partition_axis] > limit:
            raise NkiLimitError(
                f"partition dimension {shape[partition_axis]} of tensor `{name}` of shape {list(shape)} exceeds the "
                f"architecture limit of {limit} partitions (nl.tile_size.pmax)",
                where=author_location(),
                hint=f"loop over tiles of at most {limit} rows",
            )
        taken = prod(shape) // shape[partition_axis] * dtype.itemsize
        sbuf = buffer.space is Space.SBUF
        capacity = self.hardware.sbuf_bytes_per_partition if sbuf else self.hardware.psum_bytes_per_partition
        if taken > capacity:
            raise NkiLimitError(
                f"tensor `{name}` of shape {list(shape)} takes {taken} bytes of each {buffer.name.upper()} partition; "
                f"the limit is {capacity} on {self.hardware.target}",
                where=author_location(),
                hint="split its free dimension",
            )

    def _hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        if buffer.shared:
            return self._shared_hbm(shape, dtype, buffer, name)
        return self._new_hbm(shape, dtype, buffer, name)

    def _shared_hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        """Programs of a grid run the same Python: what the n-th run of a call makes in each is one and the same."""
        path = _call_path()
        key = (path, self._shared_calls[path])
        self._shared_calls[path] += 1
        found = self._shared.get(key)
        if found is not None:
            if (found.shape, found.dtype) != (shape, dtype):
                raise refuse(f"shared tensor `{name}` of shape {list(shape)} differs between programs of the grid")
            return found
        made = self._shared[key] = self._new_hbm(shape, dtype, buffer, name)
        return made

    def _new_hbm(self, shape: tuple[int, ...], dtype: Dtype, buffer: Buffer, name: str) -> NkiTensor:
        steps = tuple(prod(shape[axis + 1 :]) if shape[axis] > 1 else 0 for axis in range(len(shape)))
        where = author_location() if buffer.shared else None
        tensor = Tensor(
            name, Space.HBM, core_dtype(dtype), 1, prod(shape), shape, steps, shared=buffer.shared, where=where
        )
        return NkiTensor(self, View(self._declare(tensor), 0, shape, steps, None), dtype, buffer, name)

    def emit(
        self,
        operation: str,
        operands: Mapping[str, TileOrNumber | None],
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        engine: Engine | None = None,
        mask: object = None,
    ) -> int | None:
        """Record an instruction; its index, or None where a mask lets nothing through.

        Raises:
            NkiError: (and its kinds) where the instruction breaks a rule of the hardware.
        """
        row = ROWS[operation]
        box = self._box(mask, row, operands)
        if box is None:
            return None
        regions: dict[str, Operand] = {}
        for rule in row.operands:
            operand = operands.get(rule.name)
            if isinstance(operand, NkiTensor):
                regions[rule.name] = self._region(operand, box, rule)
            elif operand is not None:
                regions[rule.name] = float(operand)
        filled = {name: rule.default for name, rule in row.attributes.items()} | dict(attributes or {})
        instruction = Instruction(operation, engine or row.engines[0], regions, filled, author_location())
        verify(instruction, self.tensors, self.hardware, self.generation)
        self._count()
        self.instructions.append(instruction)
        return len(self.instructions) - 1

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

    def _box(self, mask: object, row: Row, operands: Mapping[str, TileOrNumber | None]) -> Cut | None:
        """The part of the largest operand that a mask lets through: () for all of it, None for nothing.

        Operands of whose size the row decides, such as the 8 values of max8, are not what the mask is about.
        """
        tiles = [(rule.fixed, operands.get(rule.name)) for rule in row.operands]
        ranked = [(not fixed, tile.size, tile) for fixed, tile in tiles if isinstance(tile, NkiTensor)]
        return self.cut(mask, max(ranked, key=lambda one: one[:2])[2].shape)

    def cut(self, mask: object, shape: Sequence[int]) -> Cut | None:
        """The part of a tile of `shape` that a mask lets through: () for all of it, None for nothing."""
        if mask is None or mask is True:
            return ()
        self.note_legacy("mask=")
        if isinstance(mask, bool | np.bool_):
            return () if mask else None
        if not isinstance(mask, Mask):
            raise refuse(f"mask={mask!r}: expected a comparison of index tiles, such as i_p < n")
        box = mask.box(shape)
        if box is None:
            return None
        cut = tuple(None if part == (0, count) else part for part, count in zip(box, shape, strict=True))
        return cut if any(cut) else ()

    def _region(self, tensor: NkiTensor, cut: Cut, rule: OperandRule) -> Region:
        if tensor.tracer is not self:
            raise refuse(f"tensor `{tensor.name}` belongs to another kernel")
        if rule.written and not tensor.writable:
            raise refuse(
                f"tensor `{tensor.name}` cannot be written",
                "an input is immutable and a broadcast view read-only: write to a tensor of nl.ndarray",
            )
        view = tensor.view.cut(cut[:1] if rule.fixed else cut) if cut else tensor.view
        tensor.check_ranges(view)
        if view.partition_axis not in (None, 0):
            raise refuse(
                f"tensor `{tensor.name}`: the leading dimension of an operand must be the partition dimension; "
                f"it is dimension {view.partition_axis} of the shape {list(view.shape)}",
                "index the block dimensions in front of it",
            )
        return Region(view.tensor, view.offset, tuple(zip(view.steps, view.shape, strict=True)))

    def assign(self, target: NkiTensor, value: object) -> None:
        """`target[…] = value`."""
        if isinstance(value, NkiTensor) and value.tracer is self and value.view == target.view:
            return  # what `target[…] += value` leaves behind
        self.note_legacy("assignment to a tile by []")
        if isinstance(value, NkiTensor):
            if not (target.on_chip and value.on_chip):
                raise refuse(
                    f"`{target.name}[…] = …` moves data between memories", "use nl.load, nl.store or nisa.dma_copy"
                )
            source = value if value.shape == target.shape else value.broadcast_to(target.shape)
            self.emit("tensor_copy", {"dst": target, "src": source})
            self._assignments.add((self.program, len(self.instructions) - 1))
        elif isinstance(value, int | float) or whole(value) is not None:
            self.emit("memset", {"dst": target, "value": number(value)})
        else:
            raise refuse(f"`{target.name}[…] = …`: a {type(value).__name__} is no tile and no number")

    def accumulate(self, target: NkiTensor, value: object) -> NkiTensor:
        """`target += value`: a matmul's product goes straight to PSUM; anything else is an addition."""
        if isinstance(value, NkiTensor) and target.buffer.space is Space.PSUM and self._is_last_matmul(value):
            self.note_legacy("psum += nisa.nc_matmul(…)")
            last = self.instructions[-1]
            dst = next(rule for rule in ROWS[last.operation].operands if rule.name == "dst")
            operands = {**last.operands, "dst": self._region(target, (), dst)}
            accumulating = replace(last, operands=operands, attributes={**last.attributes, "accumulate": None})
            verify(accumulating, self.tensors, self.hardware, self.generation)
            self.instructions[-1] = accumulating
            self.accumulated.add(value.view.tensor)
            return target
        return self.operate("+", target, value, into=target)

    def _is_last_matmul(self, value: NkiTensor) -> bool:
        at = value.producer
        return at is not None and at == len(self.instructions) - 1 and self.instructions[at].operation == "nc_matmul"

    def operate(self, symbol: str, left: object, right: object, into: NkiTensor | None = None) -> NkiTensor:
        """A Python operator on tiles, which Beta 1 has."""
        if self.generation == CURRENT:
            kinds = [type(one).__name__ for one in (left, right)]
            hint = f"`import nki` has no operators on tensors: use nl.{OPERATORS[symbol]} or nisa.tensor_tensor"
            raise refuse(
                f"unsupported operand type(s) for {symbol}: '{kinds[0]}' and '{kinds[1]}'",
                f"{hint}; {STEERING}" if symbol in COMPARISONS else hint,
            )
        result = self.binary[OPERATORS[symbol]](left, right)
        if into is None:
            return result
        self.emit("tensor_copy", {"dst": into, "src": result})
        self._assignments.add((self.program, len(self.instructions) - 1))
        return into

    def finish(self, arguments: Sequence[NkiTensor], outputs: Sequence[NkiTensor]) -> Trace:
        """The trace: `arguments` in the order of the launch's, the `outputs` among them.

        Raises:
            NkiLimitError: where the live tiles exceed a memory.
            NkiError: for an output that no instruction writes.
        """
        programs = tuple(self._folded(index) for index in range(len(self.programs)))
        for program in programs:
            verify_capacity(program, self.tensors, self.hardware)
        self._check_outputs(programs, outputs)
        return Trace(
            self.kernel,
            self.hardware.target,
            self.generation,
            self.grid,
            tuple(self.tensors),
            tuple(one.view.tensor for one in arguments),
            tuple(one.view.tensor for one in outputs),
            programs,
            self._notices(),
        )

    def _folded(self, program: int) -> tuple[Instruction, ...]:
        copies = {index for one, index in self._assignments if one == program}
        return fold_copies(self.programs[program], copies, self.tensors, self.hardware, self.generation)

    def _check_outputs(self, programs: Sequence[Sequence[Instruction]], outputs: Sequence[NkiTensor]) -> None:
        written = {
            operand.tensor
            for program in programs
            for instruction in program
            for name, operand in instruction.operands.items()
            if name == "dst" and isinstance(operand, Region)
        }
        for one in outputs:
            if one.view.tensor not in written:
                raise NkiError(
                    f"{self.kernel} returns `{one.name}`, which no instruction writes",
                    hint="store the result: nl.store(out, value=…) or nisa.dma_copy(dst=out, src=…)",
                )

    def _notices(self) -> tuple[Finding, ...]:
        if not self._legacy:
            return ()
        message = (
            f"{', '.join(self._legacy)}: not valid in any released `import nki`; accepted in the mixed style of "
            "tutorials. `import neuronxcc.nki` has it, or pass destinations and slice"
        )
        return (Finding.of(GENERATION, message, min(self._legacy.values())),)


def _call_path() -> CallPath:
    """Which call of the kernel is running: the code, and the place in it, of each frame inside `run_traced`."""
    inside = takewhile(lambda frame: frame.f_code is not run_traced.__code__, frames())
    return tuple((frame.f_code, frame.f_lasti) for frame in inside)


_current: ContextVar[Tracer | None] = ContextVar("triptych_nki_tracer", default=None)


def active() -> Tracer | None:
    """The tracer of the kernel that is being traced, None outside of kernels."""
    return _current.get()


def current(what: str = "this function") -> Tracer:
    """The tracer of the kernel that is being traced.

    Raises:
        NkiError: outside of a kernel.
    """
    tracer = _current.get()
    if tracer is None:
        raise refuse(f"{what} was called outside of a kernel", "call it inside a function decorated with @nki.jit")
    return tracer


def run_traced(tracer: Tracer, body: Callable[[], object]) -> object:
    """Run a kernel's Python with `tracer` in force.

    Raises:
        NkiError: (and its kinds) for what it may not do.
        BudgetExceeded: where it spins without an instruction.
    """
    token = _current.set(tracer)
    try:
        with stopped_where_it_spins(tracer.kernel, lambda: tracer.recorded):
            return body()
    finally:
        _current.reset(token)
