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
from triptych.neuron.run.buffers import Buffer, Place, Scattered, new_buffer, units
from triptych.neuron.run.checks import indexcheck, initcheck, notecheck, psumcheck, racecheck, rangecheck
from triptych.neuron.run.definedness import Flags, Given, flags_of_meeting, propagate
from triptych.neuron.run.findings import Findings
from triptych.neuron.run.kinds import Kind
from triptych.neuron.run.places import place_of
from triptych.neuron.run.program_facts import ProgramFacts
from triptych.neuron.run.tally import Tally


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
    places: dict[str, Place]
    buffers: dict[str, Buffer]


class ProgramRun:
    """One program's run: `shared` holds the buffers that outlive it, its tiles come and go."""

    def __init__(
        self,
        trace: Trace,
        index: int,
        facts: ProgramFacts,
        shared: Mapping[int, Buffer],
        tally: Tally,
        findings: Findings,
    ) -> None:
        """Ready to run program `index` of the grid, of which these facts are known."""
        self._trace = trace
        self._program = index
        self._facts = facts
        self._buffers = dict(shared)
        self._units = units(trace.tensors)
        self._tally = tally
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
        program = self._trace.programs[self._program]
        facts = self._facts
        kinds, dropped, ends, begins = facts.kinds, facts.dropped, facts.ends, facts.begins
        steps: list[int] = []
        at = 0
        while at < len(program):
            instruction = program[at]
            steps.append(at)
            kind = kinds[at]
            following = at + 1
            effect = kind.row.effect
            if effect is Effect.COMPUTE:
                self._compute(instruction, kind)
            elif effect in _LOOPS:
                following = self._loop(instruction, kind.row, at, ends, begins)
            else:
                yield from self._step(instruction, kind)
            self._tally.add(instruction.where, kind.counts)
            for tensor in dropped.get(at, ()):
                self._buffers.pop(tensor, None)
            at = following
        if ends:
            self.steps = tuple(steps)

    def _loop(
        self, instruction: Instruction, row: Row, at: int, ends: Mapping[int, int], begins: Mapping[int, int]
    ) -> int:
        """Where to go on at the begin or the end of a loop."""
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
        begun = buffer.defined_view(region) is None
        index = int(buffer.read(region)[0, 0]) + step if begun else self._number(instruction, "lower")
        if index >= self._number(instruction, "upper"):
            self._buffers.pop(region.tensor, None)
            return ends[at] + 1
        buffer.write(region, np.asarray(index, np.int32))
        buffer.mark_defined(region, None)
        return at + 1

    def _number(self, instruction: Instruction, name: str) -> int:
        """The whole number, or what the register holds, that an operand is."""
        operand = instruction.operands[name]
        if not isinstance(operand, Region):
            return int(operand)
        buffer = self._buffer(operand)
        if buffer.defined_view(operand) is not None:
            indexcheck(self._findings, instruction, buffer.tensor.name)
        return int(buffer.read(operand)[0, 0])

    def _buffer(self, region: Region) -> Buffer:
        tensor = self._trace.tensors[region.tensor]
        root = region.tensor if tensor.alias is None else tensor.alias
        found = self._buffers.get(root)
        if found is None:
            found = new_buffer(self._trace.tensors[root], len(self._trace.programs), self._units.get(root))
            self._buffers[root] = found
        return found if tensor.alias is None else found.alias(tensor)

    def _place(self, instruction: Instruction, region: Region, dynamic: Dynamic, *, stores: bool) -> Place:
        index = self._buffer(dynamic.index)
        if index.defined_view(dynamic.index) is not None:
            indexcheck(self._findings, instruction, index.tensor.name)
        indices = index.read(dynamic.index).astype(np.int64)
        tensor = self._trace.tensors[region.tensor]
        return place_of(region, indices, instruction, tensor, self._trace.kernel, stores=stores)

    def _inputs(self, instruction: Instruction, kind: Kind) -> Inputs:
        inputs = Inputs(kind.shapes, kind.dtypes, {}, {}, {}, {})
        operands = instruction.operands
        for rule in kind.row.operands:
            name = rule.name
            operand = operands.get(name)
            if isinstance(operand, Region):
                buffer = inputs.buffers[name] = self._buffer(operand)
                place: Place = operand
                if operand.dynamic is not None:
                    place = self._place(instruction, operand, operand.dynamic, stores=rule.written)
                inputs.places[name] = place
                if rule.read:
                    if buffer.shadow is not None:
                        self._load(instruction, buffer, place)
                    inputs.values[name] = buffer.read(place)
                    inputs.flags[name] = buffer.defined_view(place)
            elif operand is not None:
                inputs.values[name] = operand
        return inputs

    def _compute(self, instruction: Instruction, kind: Kind) -> None:
        """Execute an instruction whose meaning is all that there is to it."""
        inputs = self._inputs(instruction, kind)
        values = self._values(inputs.values, inputs)
        row, attributes = kind.row, instruction.attributes
        rangecheck(self._findings, instruction, values)
        results = row.meaning(values, attributes)
        if values.notes:
            notecheck(self._findings, instruction, values.notes)
        wanted = [name for name in results if name in inputs.places]  # nobody asked for the others
        defined: dict[str, Flags | None] = dict.fromkeys(wanted)
        if any(flags is not None for flags in inputs.flags.values()):
            # Before the first is written: an output may lie where an input does.
            given = Given(inputs.values, inputs.flags, inputs.shapes, inputs.dtypes)
            defined = {name: propagate(row, attributes, given, name) for name in wanted}
        for name in wanted:
            self._write(instruction, kind, name, inputs, results[name], defined[name])

    def _step(self, instruction: Instruction, kind: Kind) -> Generator[Meeting, Sequence[Meeting]]:
        """Execute an instruction that prints, or that waits for other programs."""
        if kind.row.effect is Effect.PRINT:
            inputs = self._inputs(instruction, kind)
            shown = np.array2string(self._values(inputs.values, inputs)["tensor"], threshold=1 << 16)
            self.printed.append(f"{instruction.attributes['prefix']}{shown}\n")
            return
        row, inputs = kind.row, self._inputs(instruction, kind)
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
            self._write(instruction, kind, name, inputs, results[name], known)

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

    def _write(
        self,
        instruction: Instruction,
        kind: Kind,
        name: str,
        inputs: Inputs,
        values: NDArray[Any],
        defined: Flags | None,
    ) -> None:
        buffer, place = inputs.buffers[name], inputs.places[name]
        if values.ndim:
            values = values.reshape(place.shape)
        place, values, defined = _without_skipped(place, inputs, values, defined)
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
        if adding is True and old.dtype == np.float32 and buffer.covered(place):
            return np.add(old, values, out=old)  # where it lies: to write it there once more costs nothing
        total = old.astype(np.float32, copy=False) + values
        return total if adding is True else np.where(adding, total, values)


_LOOPS = frozenset({Effect.BEGIN_COUNTED, Effect.BEGIN_WHILE, Effect.END})


def _without_skipped(
    place: Place, inputs: Inputs, values: NDArray[Any], defined: Flags | None
) -> tuple[Place, NDArray[Any], Flags | None]:
    """Leaves out of what is written the elements whose source lies outside: they stay what they were."""
    skipped = [one.valid for name, one in inputs.places.items() if type(one) is Scattered and name in inputs.values]
    masks = [one for one in skipped if one is not None]
    if not masks:
        return place, values, defined
    valid = np.logical_and.reduce([one.reshape(-1) for one in masks])
    offsets = place.offsets if isinstance(place, Scattered) else _offsets(place)
    if isinstance(place, Scattered) and place.valid is not None:
        valid = valid & place.valid.reshape(-1)
    flags = None if defined is None else defined.reshape(-1)[valid]
    return Scattered(offsets.reshape(-1)[valid]), values.reshape(-1)[valid], flags


def _without_masked(
    place: Place, values: np.ma.MaskedArray[Any, Any], defined: Flags | None
) -> tuple[Place, NDArray[Any], Flags | None]:
    """Leaves out of what is written the elements that are masked: they stay what they were."""
    kept = ~np.ma.getmaskarray(values).reshape(-1)
    offsets = place.offsets if isinstance(place, Scattered) else _offsets(place)
    flags = None if defined is None else defined.reshape(-1)[kept]
    flags = None if flags is None or flags.all() else flags
    return Scattered(offsets.reshape(-1)[kept]), np.ma.getdata(values).reshape(-1)[kept], flags


def _offsets(region: Region) -> NDArray[np.int64]:
    """The offsets of a region's elements."""
    offsets = np.full((1,) * len(region.pattern), region.offset, np.int64)
    for axis, (step, count) in enumerate(region.pattern):
        shape = [1] * len(region.pattern)
        shape[axis] = count
        offsets = offsets + (step * np.arange(count, dtype=np.int64)).reshape(shape)
    return offsets
