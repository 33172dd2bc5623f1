"""Executes the instructions of one program of the grid, in their order, on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import MemoryFault
from triptych.core.launches import Severity
from triptych.neuron.isa.casts import convert
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.occupancy import lifetimes
from triptych.neuron.isa.row import ROWS, Row, Values
from triptych.neuron.isa.trace import Instruction, Region, Trace
from triptych.neuron.run.buffers import Buffer, new_buffer, region_view
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
            found = self._buffers[region.tensor] = new_buffer(self._trace.tensors[region.tensor])
        return found

    def _step(self, instruction: Instruction, row: Row) -> None:
        inputs: dict[str, NDArray[Any] | float] = {}
        flags: dict[str, tuple[Flags | None, tuple[int, ...]]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for rule in row.operands:
            operand = instruction.operands.get(rule.name)
            if isinstance(operand, Region):
                shapes[rule.name] = operand.shape
                if rule.read:
                    buffer = self._buffer(operand)
                    self._load(buffer, operand)
                    inputs[rule.name] = buffer.view(operand)
                    flags[rule.name] = (buffer.defined_view(operand), operand.shape)
            elif operand is not None:
                inputs[rule.name] = operand
        self._check_range(instruction, inputs)
        for name, values in row.meaning(Values(inputs, shapes), instruction.attributes).items():
            defined = propagate(row.flow, flags, shapes[name])
            self._write(instruction, row, name, values, defined)

    def _load(self, buffer: Buffer, region: Region) -> None:
        if buffer.shadow is not None:
            item = buffer.tensor.dtype.bytes
            region_view(buffer.shadow.loads, buffer.base, item, np.dtype(f"u{item}"), region)[...] = _stamp(0, item)

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
        target[...] = convert(values, buffer.tensor.dtype)
        buffer.mark_defined(region, defined)

    def _store(self, instruction: Instruction, buffer: Buffer, region: Region, defined: Flags | None) -> None:
        """Stamp the bytes of HBM that are stored; report undefined data, and what another program stored there."""
        name = buffer.tensor.name
        if not buffer.writable:
            raise MemoryFault(f"the kernel stores to `{name}`, whose array is read-only", where=instruction.where)
        if defined is not None:
            count = int(defined.size - np.count_nonzero(defined))
            message = f"{count} of {defined.size} elements stored to `{name}` come from memory that was never written"
            self._findings.add("initcheck", Severity.ERROR, message, instruction.where)
        assert buffer.shadow is not None
        item = buffer.tensor.dtype.bytes
        stamps = region_view(buffer.shadow.stores, buffer.base, item, np.dtype(f"u{item}"), region)
        mine = _stamp(self._program, item)
        if len(self._trace.programs) > 1 and np.any((stamps != 0) & (stamps != mine)):
            message = f"program {self._program} stores to elements of `{name}` that another program of the grid stored"
            self._findings.add("racecheck", Severity.ERROR, message, instruction.where)
        stamps[...] = mine

    def _accumulate(
        self, instruction: Instruction, buffer: Buffer, region: Region, target: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[Any]:
        """What a matmul leaves in PSUM: its product, or the sum with what matmuls before it left there."""
        flags = buffer.accumulating_view(region)
        asked = instruction.attributes.get("accumulate")
        name = buffer.tensor.name
        if asked is True and not (flags.all() or buffer.tensor.zeroed):
            message = f"accumulates onto elements of `{name}` that no matmul has written: undefined on the hardware"
            self._findings.add("psumcheck", Severity.WARNING, message, instruction.where)
        if asked is None and not flags.all() and self._holds_numbers(buffer, region, flags):
            message = f"the first matmul onto `{name}` replaces what another engine wrote: undefined on the hardware"
            self._findings.add("psumcheck", Severity.WARNING, message, instruction.where)
        adding = np.bool_(asked) if asked is not None else flags.copy()
        flags[...] = True
        if not np.any(adding):
            return values
        return np.where(adding, target.astype(np.float32) + values, values)

    @staticmethod
    def _holds_numbers(buffer: Buffer, region: Region, flags: Flags) -> bool:
        """Whether an engine other than the Tensor engine has put something other than zeros there."""
        defined = buffer.defined_view(region)
        known = np.ones(region.shape, np.bool_) if defined is None else defined
        return bool(np.any(known & ~flags & (buffer.view(region) != 0)))

    def _check_range(self, instruction: Instruction, inputs: Mapping[str, NDArray[Any] | float]) -> None:
        """Report arguments for which the Scalar engine's approximation of a function does not hold."""
        function = FUNCTIONS.get(str(instruction.attributes.get("function")))
        if function is None or function.valid is None or "bias" in inputs or "scale" in inputs:
            return
        data = np.abs(np.asarray(inputs["data"], np.float32))
        low, high = function.valid
        outside = ((data < low) & (data != 0)) | (data > high)
        if outside.any():
            message = f"'{function.name}' of values whose magnitude is outside [{low:.4g}, {high:.4g}]"
            self._findings.add("rangecheck", Severity.WARNING, message, instruction.where)


def _stamp(program: int, item: int) -> int:
    """1 + program (modulo 255) in each byte of an element."""
    return int.from_bytes(bytes([1 + program % 255]) * item, "little")
