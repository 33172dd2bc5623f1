"""Executes the instructions of one program of the grid, in their order, on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import MemoryFault
from triptych.core.memory_access import MemoryAccess
from triptych.neuron.isa.alu import gives_bits
from triptych.neuron.isa.casts import convert
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.occupancy import lifetimes
from triptych.neuron.isa.row import ROWS, Row, Values
from triptych.neuron.isa.trace import Instruction, Region, Trace
from triptych.neuron.run.buffers import Buffer, new_buffer, stamps_view
from triptych.neuron.run.checks import initcheck, psumcheck, racecheck, rangecheck
from triptych.neuron.run.definedness import Flags, propagate
from triptych.neuron.run.findings import Findings
from triptych.neuron.run.tally import Tally


class ProgramRun:
    """One program's run: `shared` holds the buffers that outlive it, its tiles come and go."""

    def __init__(
        self,
        trace: Trace,
        index: int,
        hardware: Hardware,
        shared: Mapping[int, Buffer],
        tally: Tally,
        findings: Findings,
    ) -> None:
        """Ready to run program `index` of the grid."""
        self._trace = trace
        self._program = index
        self._hardware = hardware
        self._buffers = dict(shared)
        self._shared = frozenset(shared)
        self._tally = tally
        self._findings = findings

    def run(self) -> None:
        """Execute all instructions; a tile is dropped behind the last that names it."""
        program = self._trace.programs[self._program]
        last = lifetimes(program).last
        for index, instruction in enumerate(program):
            self._step(instruction, ROWS[instruction.operation])
            self._tally.add(instruction, self._trace.tensors, self._hardware)
            for operand in instruction.operands.values():
                if isinstance(operand, Region) and last[operand.tensor] == index and operand.tensor not in self._shared:
                    self._buffers.pop(operand.tensor, None)

    def _buffer(self, region: Region) -> Buffer:
        found = self._buffers.get(region.tensor)
        if found is None:
            found = self._buffers[region.tensor] = new_buffer(
                self._trace.tensors[region.tensor], len(self._trace.programs)
            )
        return found

    def _step(self, instruction: Instruction, row: Row) -> None:
        inputs: dict[str, NDArray[Any] | float] = {}
        flags: dict[str, Flags | None] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for rule in row.operands:
            operand = instruction.operands.get(rule.name)
            if isinstance(operand, Region):
                shapes[rule.name] = operand.shape
                if rule.read:
                    buffer = self._buffer(operand)
                    self._load(buffer, operand)
                    inputs[rule.name] = buffer.view(operand)
                    flags[rule.name] = buffer.defined_view(operand)
            elif operand is not None:
                inputs[rule.name] = operand
        rangecheck(self._findings, instruction, inputs)
        results = row.meaning(Values(inputs, shapes), instruction.attributes)
        wanted = [name for name in results if name in shapes]  # others are optional outputs that nobody asked for
        # Before the first is written: an output may lie where an input does.
        defined = {name: propagate(row, instruction.attributes, inputs, flags, shapes, name) for name in wanted}
        for name in wanted:
            self._write(instruction, row, name, results[name], defined[name])

    def _load(self, buffer: Buffer, region: Region) -> None:
        if buffer.shadow is not None:
            item = buffer.tensor.dtype.bytes
            stamps_view(buffer.shadow.loads, buffer.base, item, region)[...] = 1

    def _write(
        self, instruction: Instruction, row: Row, name: str, values: NDArray[Any], defined: Flags | None
    ) -> None:
        region = instruction.region(name)
        buffer = self._buffer(region)
        if buffer.shadow is not None:
            self._store(instruction, buffer, region, defined)
        target = buffer.view(region)
        if values.ndim:
            values = values.reshape(region.shape)
        if row.accumulates:
            values = self._accumulate(instruction, buffer, region, target, values)
        elif buffer.tensor.space is Space.PSUM:
            buffer.accumulating_view(region)[...] = False
        target[...] = convert(values, buffer.tensor.dtype, as_bits=gives_bits(instruction.attributes))
        buffer.mark_defined(region, defined)

    def _store(self, instruction: Instruction, buffer: Buffer, region: Region, defined: Flags | None) -> None:
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
        assert buffer.shadow is not None
        item = buffer.tensor.dtype.bytes
        stamps = stamps_view(buffer.shadow.stores, buffer.base, item, region)
        mine = 1 + self._program
        if len(self._trace.programs) > 1:
            racecheck(self._findings, instruction, name, self._program, stamps, mine)
        stamps[...] = mine

    def _accumulate(
        self, instruction: Instruction, buffer: Buffer, region: Region, target: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[Any]:
        """What a matmul leaves in PSUM: its product, or the sum with what matmuls before it left there."""
        flags = buffer.accumulating_view(region)
        asked = instruction.attributes.get("accumulate")
        psumcheck(self._findings, instruction, buffer, region, flags)
        adding = np.bool_(asked) if asked is not None else flags.copy()
        flags[...] = True
        if not np.any(adding):
            return values
        return np.where(adding, target.astype(np.float32) + values, values)
