"""Executes the instructions of one program of the grid, in their order, on numpy arrays."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.core.errors import BudgetExceeded, MemoryFault
from triptych.core.memory_access import MemoryAccess
from triptych.core.settings import settings
from triptych.neuron.isa.casts import convert
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.row import Effect, Row, Values
from triptych.neuron.isa.trace import Dynamic, Instruction, Region, Trace
from triptych.neuron.run.buffers import Buffer, Pool, new_buffer
from triptych.neuron.run.checks import indexcheck, initcheck, notecheck, psumcheck, racecheck, rangecheck
from triptych.neuron.run.definedness import Flags, Given, flags_of_meeting, propagate
from triptych.neuron.run.findings import Findings
from triptych.neuron.run.places import place_of
from triptych.neuron.run.program_facts import ProgramFacts, Step
from triptych.neuron.run.strided import Place, Scattered, offsets_of, strided


@dataclass(frozen=True, slots=True)
class Meeting:
    """A program waits at an instruction that others must reach too."""

    instruction: Instruction
    values: Values
    flags: Values
    """Which elements of its inputs are defined."""


@dataclass(slots=True)
class Inputs:
    """What an instruction reads, and where what it writes lies."""

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, DType]
    values: dict[str, NDArray[Any] | float]
    flags: dict[str, Flags | None]
    """None: all of its elements are defined."""
    places: dict[str, Place]
    buffers: dict[str, Buffer]
    undefined: bool
    """Whether an element of an input is not defined."""
    inside: Sequence[Flags]
    """Of the inputs that indices chose, some of them outside: which elements are not."""


class ProgramRun:
    """One program's run: `shared` holds the buffers that outlive it, its tiles come and go."""

    def __init__(
        self,
        trace: Trace,
        index: int,
        facts: ProgramFacts,
        shared: Mapping[int, Buffer],
        pool: Pool,
        findings: Findings,
    ) -> None:
        """Ready to run program `index` of the grid, of which these facts are known; its tiles take `pool`'s memory."""
        self._trace = trace
        self._program = index
        self._facts = facts
        self._buffers = dict(shared)
        self._pool = pool
        self._findings = findings
        self._rounds = 0
        self.printed: list[str] = []
        """What it printed."""
        self.steps: Sequence[int] = range(len(trace.programs[index]))
        """The index of each instruction in the order in which they are executed, known when it has run."""

    def run(self) -> Generator[Meeting, Sequence[Meeting]]:
        """Execute all instructions; a tile is dropped behind the last that names it.

        Yields where it waits for other programs, and goes on with what all of them brought.
        """
        steps, begins = self._facts.steps, self._facts.begins
        executed: list[int] = []
        at = 0
        while at < len(steps):
            step = steps[at]
            if begins:
                executed.append(at)
            following = at + 1
            effect = step.kind.row.effect
            if effect is Effect.COMPUTE:
                self._compute(step)
            elif effect in _LOOPS:
                following = self._loop(step.instruction, step.kind.row, at)
            else:
                yield from self._step(step)
            for tensor in step.dropped:
                buffer = self._buffers.pop(tensor, None)
                if buffer is not None:
                    self._pool.give(buffer.data)
            at = following
        if begins:
            self.steps = tuple(executed)

    def _loop(self, instruction: Instruction, row: Row, at: int) -> int:
        """Where to go on at the begin or the end of a loop."""
        ends, begins = self._facts.ends, self._facts.begins
        if row.effect is Effect.END:
            self._rounds += 1
            if self._rounds > settings().budget:
                raise BudgetExceeded(
                    f"kernel {self._trace.kernel}: its loops ran more than {settings().budget} rounds",
                    where=instruction.where,
                    hint="does the condition of a loop ever become 0? TRIPTYCH_BUDGET raises the limit",
                    kernel=self._trace.kernel,
                )
            return begins[at]
        if row.effect is Effect.BEGIN_WHILE:
            return at + 1 if self._number(instruction, "condition") else ends[at] + 1
        region = instruction.region("index")
        buffer = self._buffer(region)
        step = instruction.attributes["step"]
        assert isinstance(step, int)
        place = strided(region, buffer.tensor.dtype.stored)
        begun = buffer.defined_flags(place) is True
        index = int(buffer.read(place)[0, 0]) + step if begun else self._number(instruction, "lower")
        if index >= self._number(instruction, "upper"):
            self._buffers.pop(region.tensor, None)
            return ends[at] + 1
        buffer.write(place, np.asarray(index, np.int32))
        buffer.mark_defined(place, None)
        return at + 1

    def _number(self, instruction: Instruction, name: str) -> int:
        """The whole number, or what the register holds, that an operand is."""
        operand = instruction.operands[name]
        if not isinstance(operand, Region):
            return int(operand)
        return int(self._indices(instruction, operand)[0, 0])

    def _indices(self, instruction: Instruction, region: Region) -> NDArray[Any]:
        """What the region that decides what is accessed, or how often, holds."""
        buffer = self._buffer(region)
        place = strided(region, buffer.tensor.dtype.stored)
        if buffer.defined_flags(place) is not True:
            indexcheck(self._findings, instruction, buffer.tensor.name)
        return buffer.read(place)

    def _buffer(self, region: Region) -> Buffer:
        tensor = self._trace.tensors[region.tensor]
        root = region.tensor if tensor.alias is None else tensor.alias
        found = self._buffers.get(root)
        if found is None:
            found = new_buffer(self._trace.tensors[root], len(self._trace.programs), self._pool)
            self._buffers[root] = found
        return found if tensor.alias is None else found.alias(tensor)

    def _place(self, instruction: Instruction, region: Region, dynamic: Dynamic, *, stores: bool) -> Place:
        indices = self._indices(instruction, dynamic.index).astype(np.int64)
        tensor = self._trace.tensors[region.tensor]
        return place_of(region, indices, instruction, tensor, self._trace.kernel, stores=stores)

    def _inputs(self, step: Step) -> Inputs:
        instruction, kind = step.instruction, step.kind
        values: dict[str, NDArray[Any] | float] = dict(step.numbers)
        flags: dict[str, Flags | None] = {}
        places: dict[str, Place] = {}
        buffers: dict[str, Buffer] = {}
        undefined = False
        inside: list[Flags] = []
        for use, region, unmoved in step.regions:
            name = use.name
            buffer = buffers[name] = self._buffers.get(region.tensor) or self._buffer(region)
            place: Place = unmoved
            if region.dynamic is not None:
                place = self._place(instruction, region, region.dynamic, stores=use.written)
                if type(place) is Scattered and place.valid is not None and use.read:
                    inside.append(place.valid)
            places[name] = place
            if use.read:
                if buffer.shadow is not None:
                    self._load(instruction, buffer, place)
                values[name] = buffer.read(place)
                known = flags[name] = buffer.defined_view(place)
                if known is not None:
                    undefined = True
        return Inputs(kind.shapes, kind.dtypes, values, flags, places, buffers, undefined, inside)

    def _compute(self, step: Step) -> None:
        """Execute an instruction whose meaning is all that there is to it."""
        instruction, row = step.instruction, step.kind.row
        attributes = instruction.attributes
        inputs = self._inputs(step)
        values = self._values(inputs.values, inputs)
        rangecheck(self._findings, instruction, values)
        if row.in_place and not inputs.undefined:
            values.dst, values.adds = self._target(instruction, row, inputs)
        results = row.meaning(values, attributes)
        if values.notes:
            notecheck(self._findings, instruction, values.notes)
        wanted = [name for name in results if name in inputs.places]  # nobody asked for the others
        defined: dict[str, Flags | None] = {}
        if inputs.undefined:
            # Before the first is written: an output may lie where an input does.
            given = Given(inputs.values, inputs.flags, inputs.shapes, inputs.dtypes)
            defined = {name: propagate(row, attributes, given, name) for name in wanted}
        for name in wanted:
            if name == "dst" and _is_in_place(values, row, results[name]):
                inputs.buffers[name].mark_defined(inputs.places[name], None)
            else:
                self._write(step, name, inputs, results[name], defined.get(name))

    def _step(self, step: Step) -> Generator[Meeting, Sequence[Meeting]]:
        """Execute an instruction that prints, or that waits for other programs."""
        instruction, row, inputs = step.instruction, step.kind.row, self._inputs(step)
        if row.effect is Effect.PRINT:
            shown = np.array2string(self._values(inputs.values, inputs)["tensor"], threshold=1 << 16)
            self.printed.append(f"{instruction.attributes['prefix']}{shown}\n")
            return
        # Copies: whoever goes on first may overwrite what it brought before the others have taken it.
        inputs.values = {
            name: one.copy() if isinstance(one, np.ndarray) else one for name, one in inputs.values.items()
        }
        inputs.flags = {name: None if one is None else one.copy() for name, one in inputs.flags.items()}
        values = self._values(inputs.values, inputs)
        flags = self._values(flags_of_meeting(inputs.flags, inputs.shapes), inputs)
        flags.flag(values)
        met = yield Meeting(instruction, values, flags)
        values.others = [one.values for one in met]
        self._check_selecting(instruction, row, inputs)
        results = row.meaning(values, instruction.attributes)
        notecheck(self._findings, instruction, values.notes)
        defined = self._defined_by_meeting(instruction, row, inputs, flags, met, list(results))
        for name, known in defined.items():
            self._write(step, name, inputs, results[name], known)

    def _values(self, by_name: Mapping[str, NDArray[Any] | float], inputs: Inputs) -> Values:
        return Values(by_name, inputs.shapes, inputs.dtypes, self._program)

    def _check_selecting(self, instruction: Instruction, row: Row, inputs: Inputs) -> None:
        """What decides which elements are moved must have been written."""
        for rule in row.operands:
            if rule.selects and inputs.flags.get(rule.name) is not None:
                tensor = self._buffer(instruction.region(rule.name)).tensor
                indexcheck(self._findings, instruction, tensor.name)

    def _defined_by_meeting(
        self,
        instruction: Instruction,
        row: Row,
        inputs: Inputs,
        flags: Values,
        met: Sequence[Meeting],
        names: Sequence[str],
    ) -> dict[str, Flags | None]:
        """Which elements of what a meeting gave are defined: what the meaning makes of everybody's flags."""
        flags.others = [one.flags for one in met]
        attributes = dict(instruction.attributes)
        if "op" in attributes:
            attributes["op"] = "minimum"
        made = row.meaning(flags, attributes)
        found = {
            name: np.asarray(np.ma.getdata(made[name]) != 0).reshape(inputs.shapes[name])
            for name in names
            if name in inputs.shapes
        }
        return {name: None if one.all() else one for name, one in found.items()}

    def _load(self, instruction: Instruction, buffer: Buffer, place: Place) -> None:
        """Stamp the bytes of HBM that are loaded."""
        buffer.stamp_load(place)
        if len(self._trace.programs) > 1 and buffer.tensor.shared:
            racecheck(
                self._findings, instruction, buffer.tensor.name, self._program, buffer.store_stamps(place), "loads"
            )

    def _write(self, step: Step, name: str, inputs: Inputs, values: NDArray[Any], defined: Flags | None) -> None:
        instruction, kind = step.instruction, step.kind
        buffer, place = inputs.buffers[name], inputs.places[name]
        if values.ndim and values.shape != place.shape:
            values = values.reshape(place.shape)
        if inputs.inside:
            place, values, defined = _without_skipped(place, inputs.inside, values, defined)
        if isinstance(values, np.ma.MaskedArray):
            place, values, defined = _without_masked(place, values, defined)
        if buffer.shadow is not None:
            self._store(instruction, buffer, place, defined)
        if isinstance(place, Scattered) and name in inputs.values:
            values = self._repeated(instruction, buffer, place, inputs, values)
        if kind.row.accumulates:
            values = self._accumulate(instruction, buffer, place, values)
        elif buffer.tensor.space is Space.PSUM:
            buffer.mark_accumulating(place, False)
        buffer.write(place, convert(values, buffer.tensor.dtype, as_bits=kind.gives_bits))
        buffer.mark_defined(place, defined)

    def _repeated(
        self, instruction: Instruction, buffer: Buffer, place: Scattered, inputs: Inputs, values: NDArray[Any]
    ) -> NDArray[Any]:
        """What is added to elements that indices name several times: all of it where that is atomic, else a finding."""
        offsets = place.offsets.reshape(-1)
        unique, first, count = np.unique(offsets, return_inverse=True, return_counts=True)
        if len(unique) == len(offsets):
            return values
        if not instruction.attributes.get("atomic"):
            note = f"{int(np.count_nonzero(count > 1))} elements of `{buffer.tensor.name}` are named several times"
            notecheck(self._findings, instruction, [f"{note}: each is read before any is written"])
            return values
        old = buffer.read(place).astype(np.float32).reshape(-1)
        total = old[np.unique(first, return_index=True)[1]]
        np.add.at(total, first, values.reshape(-1) - old)
        return total[first].reshape(values.shape)

    def _store(self, instruction: Instruction, buffer: Buffer, place: Place, defined: Flags | None) -> None:
        """Stamp the bytes of HBM that are stored."""
        name = buffer.tensor.name
        if not buffer.writable:
            raise MemoryFault(
                f"the kernel stores to `{name}`, whose array is read-only",
                where=instruction.where,
                kernel=self._trace.kernel,
                memory=MemoryAccess("store", "hbm", allocation=name),
            )
        initcheck(self._findings, instruction, name, defined)
        if len(self._trace.programs) > 1:
            stamps = buffer.store_stamps(place)
            racecheck(self._findings, instruction, name, self._program, stamps, "stores to")
        buffer.stamp_store(place, 1 + self._program)

    def _target(self, instruction: Instruction, row: Row, inputs: Inputs) -> tuple[NDArray[np.float32] | None, bool]:
        """Where a result may be put, or added (True), as it is: all of `dst`, float32 on the chip; None: nowhere."""
        buffer, place = inputs.buffers["dst"], inputs.places["dst"]
        if isinstance(place, Scattered) or inputs.inside or buffer.tensor.dtype.name != "f32":
            return None, False
        if not row.accumulates:
            if len(place.shape) != 2 or not buffer.tensor.space.on_chip:
                return None, False
            if buffer.tensor.space is Space.PSUM:
                buffer.mark_accumulating(place, False)
            return buffer.target(place), False
        flags, asked = buffer.accumulating_view(place), instruction.attributes.get("accumulate")
        adds = flags if asked is None else bool(asked)
        if isinstance(adds, np.ndarray) or (adds and flags is not True) or not place.layout.packed:
            return None, False
        psumcheck(self._findings, instruction, buffer, place, flags)
        buffer.mark_accumulating(place, True)
        return (buffer.read(place), True) if adds else (buffer.target(place), False)

    def _accumulate(self, instruction: Instruction, buffer: Buffer, place: Place, values: NDArray[Any]) -> NDArray[Any]:
        """What a matmul leaves in PSUM: its product, or the sum with what matmuls before it left there."""
        flags = buffer.accumulating_view(place)
        asked = instruction.attributes.get("accumulate")
        psumcheck(self._findings, instruction, buffer, place, flags)
        adding = flags if asked is None else bool(asked)
        buffer.mark_accumulating(place, True)
        if adding is False:
            return values
        old = buffer.read(place)
        total = old.astype(np.float32, copy=False) + values
        return total if adding is True else np.where(adding, total, values)


def _is_in_place(values: Values, row: Row, result: NDArray[Any]) -> bool:
    """Whether a result lies where `dst` does; of a row that accumulates it is put there if it does not yet."""
    if values.dst is None or (result is not values.dst and not row.accumulates):
        return False
    if result is not values.dst:
        made = result.reshape(values.dst.shape)
        values.dst[...] = values.dst + made if values.adds else made
    return True


_LOOPS = frozenset({Effect.BEGIN_COUNTED, Effect.BEGIN_WHILE, Effect.END})


def _without_skipped(
    place: Place, inside: Sequence[Flags], values: NDArray[Any], defined: Flags | None
) -> tuple[Place, NDArray[Any], Flags | None]:
    """Leaves out of what is written the elements whose source lies outside: they stay what they were."""
    valid = np.logical_and.reduce([one.reshape(-1) for one in inside])
    if isinstance(place, Scattered) and place.valid is not None:
        valid = valid & place.valid.reshape(-1)
    flags = None if defined is None else defined.reshape(-1)[valid]
    return Scattered(offsets_of(place).reshape(-1)[valid]), values.reshape(-1)[valid], flags


def _without_masked(
    place: Place, values: np.ma.MaskedArray[Any, Any], defined: Flags | None
) -> tuple[Place, NDArray[Any], Flags | None]:
    """Leaves out of what is written the elements that are masked: they stay what they were."""
    kept = ~np.ma.getmaskarray(values).reshape(-1)
    flags = None if defined is None else defined.reshape(-1)[kept]
    flags = None if flags is None or flags.all() else flags
    return Scattered(offsets_of(place).reshape(-1)[kept]), np.ma.getdata(values).reshape(-1)[kept], flags
