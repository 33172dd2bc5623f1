"""The tracer: runs a kernel's Python over tensors without data and records the instructions that it issues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import prod

import numpy as np

from triptych.core.checks import COMPILER
from triptych.core.errors import NkiLimitError
from triptych.core.launches import Finding
from triptych.core.settings import settings
from triptych.core.source import SourceLocation
from triptych.languages.calling import author_location
from triptych.languages.nki.tracing.declarations import RUN_TRACED, Declarations
from triptych.languages.nki.tracing.dependences import Path
from triptych.languages.nki.tracing.endings import check_outputs, generation_notices
from triptych.languages.nki.tracing.fold import fold_copies
from triptych.languages.nki.tracing.forms import Form, attributes_of, form_of
from triptych.languages.nki.tracing.indexing import Cut, Mask, box_cut, number, refuse, whole
from triptych.languages.nki.tracing.loops import Loops
from triptych.languages.nki.tracing.operators import COMPARISONS, OPERATORS, STEERING
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.spinning import stopped_where_it_spins
from triptych.languages.nki.tracing.split import split_axes, works_by_elements
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.views import pattern_of
from triptych.languages.nki.tracing.while_loops import OpenLoop
from triptych.neuron.isa import ROWS, Engine, Instruction, Region, Space, Trace, Verifier
from triptych.neuron.isa.capacity import verify_capacity
from triptych.neuron.isa.row import OperandRule, Row, Surroundings
from triptych.neuron.isa.trace import BETA1, CURRENT, AttributeValue, Operand, SharedAttributes

_ABSENT = "absent"
_RECORDING = 3
"""Frames of the language from `Tracer._record` outwards, at least: its own, that of `emit`, and whose call that is."""

TileOrNumber = NkiTensor | VirtualRegister | float
Binary = Callable[..., NkiTensor]


@dataclass(slots=True)
class Tracer(Declarations):
    """The trace in the making of one kernel call."""

    programs: list[list[Instruction]] = field(default_factory=list[list[Instruction]])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    """Those of the program that is being traced."""
    binary: Mapping[str, Binary] = field(default_factory=dict[str, Binary])
    """The language's functions that Python's operators and methods of tiles stand for."""
    notices: list[Finding] | None = field(default_factory=lambda: [] if settings().nki_lenient else None)
    """What AWS's compiler refuses and its simulator does not, where that is accepted; None: it is refused."""
    accumulated: set[int] = field(default_factory=set[int])
    """The products that `+=` sent elsewhere: nothing writes them any more."""
    masked: dict[int, tuple[Cut | None, ...]] = field(default_factory=dict[int, tuple[Cut | None, ...]])
    """The parts that a mask let an instruction fill of the tile that it made; None for nothing."""
    _legacy: dict[str, SourceLocation] = field(default_factory=dict[str, SourceLocation])
    loops: Loops = field(default_factory=Loops)
    """Beta 1's unrolled loops."""
    in_order: int = 0
    """How many `nl.no_reorder()` the kernel is inside of."""
    open_loops: list[OpenLoop] = field(default_factory=list[OpenLoop])
    """The `while register:` that the kernel is inside of."""
    _names: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _reset: set[tuple[int, Engine]] = field(default_factory=set[tuple[int, Engine]])
    _assignments: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _paths: list[Path] = field(default_factory=list[Path])
    """The loops that each of these is in."""
    _surroundings: Surroundings = field(init=False)
    _verifier: Verifier = field(init=False)

    def __post_init__(self) -> None:
        """Instructions are verified as they are recorded."""
        around = Surroundings(self.tensors, self.hardware, self.generation, self.grid, self.argument_ids)
        self._surroundings = around
        self._verifier = Verifier(around, self.notices, splits=self.generation == BETA1)

    def start_program(self) -> None:
        """Begin the next program of the grid."""
        self.instructions = []
        self.programs.append(self.instructions)
        self.program += 1
        self._paths = self.loops.paths_of(self.program)
        self._shared_calls.clear()

    def program_ids(self) -> tuple[int, ...]:
        """The place of the current program in the grid."""
        return tuple(int(one) for one in np.unravel_index(self.program % prod(self.grid), self.grid))

    def note_name(self, name: object) -> None:
        """An instruction has a name of its own.

        Raises:
            NkiError: where another of the kernel has it too.
        """
        if not isinstance(name, str):
            raise refuse(f"name={name!r}: the name of an instruction is a string")
        if (self.program, name) in self._names:
            raise refuse(f"duplicate op name: two instructions are named '{name}'", "give each a name of its own")
        self._names.add((self.program, name))

    def note_legacy(self, feature: str) -> None:
        """Note the use of a feature that `import nki` does not have in any release."""
        if self.generation == CURRENT:
            self._legacy.setdefault(feature, author_location())

    def breach(self, message: str, hint: str) -> None:
        """AWS's compiler refuses what its simulator takes.

        Raises:
            NkiError: unless the trace is lenient: then it is a finding.
        """
        if self.notices is None:
            raise refuse(message, hint)
        self.notices.append(Finding.of(COMPILER, message, author_location()))

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
        form = form_of(operation)
        if isinstance(mask, Mask) and mask.slanted:
            return self._emit_boxes(form, operands, attributes, engine, mask)
        box = () if mask is None else self._box(mask, form.row, operands)
        if box != () or self.masked:
            self.note_filled(operands.get("dst"), box)
        if box is None:
            return None
        return self._record(form, operands, attributes, engine, box)

    def _emit_boxes(
        self,
        form: Form,
        operands: Mapping[str, TileOrNumber | None],
        attributes: Mapping[str, AttributeValue] | None,
        engine: Engine | None,
        mask: Mask,
    ) -> int | None:
        """An instruction for each box that a mask lets through: a comparison of axes is none of the hardware's."""
        self.note_legacy("mask=")
        shape = self._masked_shape(form.row, operands)
        given = {name: one for name, one in operands.items() if one is not None}
        others = [one.shape for name, one in given.items() if isinstance(one, NkiTensor) and name != "dst"]
        dst = given.get("dst")
        alike = all(one == shape or prod(one) == one[0] for one in others)
        command = (attributes or {}).get("reduce_cmd", "idle")
        has_state = any(rule.state and (rule.name != "registers" or command != "idle") for rule in form.row.operands)
        alike = alike and isinstance(dst, NkiTensor) and dst.shape == shape
        if has_state or not alike or not works_by_elements(form.row, given):
            raise refuse(
                f"{form.row.name}: a mask that compares axes needs tiles of one shape, and an instruction that makes "
                "each element of its own",
                "nisa.affine_select selects by any affine comparison",
            )
        anywhere = (engine or form.row.engines[0]).facts.starts_anywhere
        cuts = [box_cut(box, shape) for box in mask.boxes(shape, split_rows=anywhere)]
        self.note_filled(operands.get("dst"), *cuts or [None])
        recorded = None
        for cut in cuts:
            try:
                recorded = self._record(form, operands, attributes, engine, cut)
            except NkiLimitError as error:
                raise refuse(
                    f"a mask that compares axes makes an instruction a box, one of which cannot be: {error.message}",
                    "nisa.affine_select selects by any affine comparison; DMAs begin at any partition",
                ) from None
        return recorded

    def _record(
        self,
        form: Form,
        operands: Mapping[str, TileOrNumber | None],
        attributes: Mapping[str, AttributeValue] | None,
        engine: Engine | None,
        box: Cut,
    ) -> int:
        """Record an instruction on what a mask lets through; its index."""
        chosen = engine or form.row.engines[0]
        filled = form.filled(attributes)
        regions: dict[str, Operand] = {}
        seen: list[object] = [id(filled), id(chosen)]
        for rule in form.row.operands:
            name = rule.name
            operand = operands.get(name)
            if operand is None:
                seen.append(_ABSENT)
            elif isinstance(operand, NkiTensor):
                regions[name] = region = self._operand(operand, box, rule)
                seen.append(self._verifier.place(region) if box else operand.place)
            elif isinstance(operand, VirtualRegister):
                regions[name] = region = self.index_region(operand, name)
                seen.append(self._verifier.place(region))
            else:
                regions[name] = operand = float(operand)
                seen.append(operand)
        if form.states:
            self._add_state(form, chosen, regions, filled, seen)
        instruction = Instruction(form.row.name, chosen, regions, filled, author_location(_RECORDING))
        known = type(filled) is SharedAttributes and None not in seen
        self._verifier.verify(instruction, tuple(seen) if known else None)
        self._count()
        self._paths.append(self.loops.opened)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _operand(self, tensor: NkiTensor, cut: Cut, rule: OperandRule) -> Region:
        """The region of an operand, which a tensor keeps."""
        known = tensor.region
        if known is None or cut or known.tensor in self.accumulated or not tensor.writable or tensor.tracer is not self:
            return self._region(tensor, cut, rule)
        return known

    def place_of(self, region: Region) -> object:
        """What the rules look at of a region."""
        return self._verifier.place(region)

    def note_filled(self, made: object, *parts: Cut | None) -> None:
        """An instruction filled parts of a tile; a tile that is filled twice counts as whole."""
        if not isinstance(made, NkiTensor):
            return
        tensor = made.elements.tensor
        if parts == ((),) or tensor in self.masked:
            self.masked.pop(tensor, None)
        else:
            self.masked[tensor] = parts

    def _filled(self, target: NkiTensor, value: NkiTensor) -> list[tuple[NkiTensor, NkiTensor]]:
        """Target and value where the value was filled: what a mask leaves out is not copied."""
        parts = self.masked.get(value.elements.tensor, ((),)) if self.masked and value.whole else ((),)
        return [
            (target.part(part), value.part(part)) if part else (target, value) for part in parts if part is not None
        ]

    def _box(self, mask: object, row: Row, operands: Mapping[str, TileOrNumber | None]) -> Cut | None:
        """The part of the largest operand that a mask lets through: () for all of it, None for nothing.

        Operands of whose size the row decides, such as the 8 values of max8, are not what the mask is about.
        """
        return self.cut(mask, self._masked_shape(row, operands))

    def _masked_shape(self, row: Row, operands: Mapping[str, TileOrNumber | None]) -> tuple[int, ...]:
        largest, shape = (False, -1), ()
        for rule in row.operands:
            tile = operands.get(rule.name)
            if isinstance(tile, NkiTensor) and (rank := (not rule.fixed, tile.size)) > largest:
                largest, shape = rank, tile.shape
        return shape

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
        return box_cut(box, shape)

    def _region(self, tensor: NkiTensor, cut: Cut, rule: OperandRule) -> Region:
        if tensor.tracer is not self:
            raise refuse(f"tensor `{tensor.name}` belongs to another kernel")
        if rule.written and not tensor.writable:
            raise refuse(
                f"tensor `{tensor.name}` cannot be written",
                "an input is immutable and a broadcast view read-only: write to a tensor of nl.ndarray",
            )
        view = tensor.elements
        if 0 in view.shape:
            raise refuse(f"tensor `{tensor.name}`: a part of shape {list(view.shape)} is empty")
        if cut:
            view = view.cut(cut[:1] if rule.fixed else cut)
        if view.ranges:
            tensor.check_ranges(view)
        if view.partition_axis not in (None, 0):
            raise refuse(
                f"tensor `{tensor.name}`: the leading dimension of an operand must be the partition dimension; "
                f"it is dimension {view.partition_axis} of the shape {list(view.shape)}",
                "index the block dimensions in front of it",
            )
        region = Region(view.tensor, view.offset, pattern_of(view.steps, view.shape), view.dynamic)
        if not cut:
            tensor.region = region
            if tensor.place is None:
                tensor.place = self._verifier.place(region)
        return region

    def _add_state(
        self,
        form: Form,
        engine: Engine,
        regions: dict[str, Operand],
        attributes: Mapping[str, AttributeValue],
        seen: list[object],
    ) -> None:
        """The engine's registers that the instruction works with, of the lanes that its first tile lies in."""
        command = attributes.get("reduce_cmd")
        for rule in form.states:
            if rule.state and (rule.name != "registers" or command != "idle" or "reduce_res" in regions):
                self._check_reset(rule.name, engine, command)
                lanes = next((one for one in regions.values() if isinstance(one, Region)), None)
                everywhere = form.row.name == "set_rng_seed" or lanes is None
                regions[rule.name] = state = self.state(rule.name, engine, None if everywhere else lanes)
                seen += (rule.name, self._verifier.place(state))
            elif rule.name == "registers" and engine is Engine.VECTOR:
                self._reset.discard((self.program, engine))  # after idle nobody knows what they hold

    def _check_reset(self, name: str, engine: Engine, command: AttributeValue) -> None:
        """Reduction registers hold something known only after a reset."""
        if name != "registers":
            return
        if command in ("reset", "reset_reduce", "load_reduce"):
            self._reset.add((self.program, engine))
        elif (self.program, engine) not in self._reset and (command, engine) != ("idle", Engine.VECTOR):
            raise refuse(
                f"reduce_cmd '{command}' goes on from what the {engine.value} engine's reduction registers hold, which "
                "no instruction before has set",
                "begin with reduce_cmd=nisa.reduce_cmd.reset_reduce",
            )

    def assign(self, target: NkiTensor, value: object) -> None:
        """`target[…] = value`."""
        if isinstance(value, NkiTensor) and value.tracer is self and value.elements.names(target.elements):
            return  # what `target[…] += value` leaves behind
        self.note_legacy("assignment to a tile by []")
        if isinstance(value, NkiTensor):
            if not (target.on_chip and value.on_chip):
                raise refuse(
                    f"`{target.name}[…] = …` moves data between memories", "use nl.load, nl.store or nisa.dma_copy"
                )
            fitting = value if value.shape == target.shape else value.broadcast_to(target.shape)
            for part, filled in self._filled(target, fitting):
                self.emit("tensor_copy", {"dst": part, "src": filled})
                self._assignments.add((self.program, len(self.instructions) - 1))
                if value.elements.tensor in self.loops.reduced:
                    self.loops.exempt(self.program, [len(self.instructions) - 1])
        elif isinstance(value, int | float) or whole(value) is not None:
            self.emit("memset", {"dst": target, "value": number(value)})
        else:
            raise refuse(f"`{target.name}[…] = …`: a {type(value).__name__} is no tile and no number")

    def accumulate(self, target: NkiTensor, value: object) -> NkiTensor:
        """`target += value`: a matmul's product goes straight to PSUM; anything else is an addition."""
        whole_target = target
        if isinstance(value, NkiTensor) and target.shape == value.shape:
            filled = self._filled(target, value)
            if len(filled) != 1:
                for part, one in filled:
                    self.operate("+", part, one, into=part)
                return target
            ((target, value),) = filled
        if isinstance(value, NkiTensor) and target.buffer.space is Space.PSUM and self._is_last_matmul(value):
            self.note_legacy("psum += nisa.nc_matmul(…)")
            last = self.instructions[-1]
            dst = next(rule for rule in ROWS[last.operation].operands if rule.name == "dst")
            operands = {**last.operands, "dst": self._operand(target, (), dst)}
            attributes = last.attributes
            if attributes["accumulate"] is not None:
                attributes = attributes_of(last.operation, {**attributes, "accumulate": None})
            accumulating = Instruction(last.operation, last.engine, operands, attributes, last.where)
            self._verifier.verify(accumulating)
            self.instructions[-1] = accumulating
            self.accumulated.add(value.elements.tensor)
        else:
            self.operate("+", target, value, into=target)
        return whole_target

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
        start = len(self.instructions)
        result = self.binary[OPERATORS[symbol]](left, right)
        if into is None:
            return result
        self.emit("tensor_copy", {"dst": into, "src": result})
        self._assignments.add((self.program, len(self.instructions) - 1))
        self.loops.exempt(self.program, range(start, len(self.instructions)))
        return into

    def finish(self, arguments: Sequence[NkiTensor], outputs: Sequence[NkiTensor]) -> Trace:
        """The trace: `arguments` in the order of the launch's, the `outputs` among them.

        Raises:
            NkiLimitError: where the live tiles exceed a memory.
            NkiError: for an output that no instruction writes.
        """
        for index, program in enumerate(self.programs):
            self.loops.check(index, program, self.tensors)
        programs = tuple(self._folded(index) for index in range(len(self.programs)))
        for program in programs:
            verify_capacity(program, self.tensors, self.hardware, self.generation, self.notices)
        check_outputs(self.kernel, self.tensors, programs, outputs)
        return Trace(
            self.kernel,
            self.hardware.target,
            self.generation,
            self.grid if self.ranks == 1 else (self.ranks, *self.grid),
            tuple(self.tensors),
            tuple(one.elements.tensor for one in arguments),
            tuple(one.elements.tensor for one in outputs),
            programs,
            (*dict.fromkeys(self.notices or ()), *generation_notices(self._legacy)),
            self.notices is not None,
        )

    def _folded(self, program: int) -> tuple[Instruction, ...]:
        copies = {index for one, index in self._assignments if one == program}
        folded = fold_copies(self.programs[program], copies, self._surroundings)
        return split_axes(folded, self._surroundings) if self.generation == BETA1 else folded


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


assert run_traced.__qualname__ == RUN_TRACED
