"""The checks that look at a trace while it runs: a function each, which does nothing where its check is not in force.

What AWS's compiler refuses is no check but an error: `neuron/isa/rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.chips import NeuronChip, load
from triptych.core.checks import INITCHECK, MEMCHECK, OUTPUTCHECK, PSUMCHECK, RACECHECK, RANGECHECK, TIMECHECK
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.row import Values
from triptych.neuron.isa.rows.scalar import argument
from triptych.neuron.isa.trace import Instruction, Trace
from triptych.neuron.run.buffers import Buffer
from triptych.neuron.run.definedness import Flags
from triptych.neuron.run.findings import Findings
from triptych.neuron.run.strided import Place
from triptych.neuron.timeline.advice import advice


def initcheck(findings: Findings, instruction: Instruction, name: str, defined: Flags | None) -> None:
    """A store to HBM, to the tensor `name`; `defined` marks its elements that are, None where all are."""
    if defined is None or not findings.wants(INITCHECK):
        return
    count = int(defined.size - np.count_nonzero(defined))
    message = f"{count} of {defined.size} elements stored to `{name}` come from memory that was never written"
    findings.add(INITCHECK, message, instruction.where)


def indexcheck(findings: Findings, instruction: Instruction, name: str) -> None:
    """An index, a bound or a condition, of the tensor or register `name`, that nothing has written."""
    if findings.wants(INITCHECK):
        message = f"what is accessed, or how often, depends on `{name}`, which was never written"
        findings.add(INITCHECK, message, instruction.where)


def notecheck(findings: Findings, instruction: Instruction, notes: Sequence[str]) -> None:
    """What the meaning of an instruction saw of its data: indices that are outside of a tile."""
    for note in notes:
        findings.add(MEMCHECK, f"{instruction.operation}: {note}", instruction.where)


def racecheck(
    findings: Findings, instruction: Instruction, name: str, program: int, stamps: NDArray[Any], access: str
) -> None:
    """An access to HBM by one program of several.

    `stamps` say who stored the elements before: 0 nobody, the largest number anybody before the programs last met.
    """
    if not findings.wants(RACECHECK):
        return
    if np.any((stamps != 0) & (stamps != 1 + program) & (stamps != np.iinfo(stamps.dtype).max)):
        message = f"program {program} {access} elements of `{name}` that another program of the grid stored"
        findings.add(RACECHECK, message, instruction.where)


def psumcheck(findings: Findings, instruction: Instruction, buffer: Buffer, place: Place, flags: Flags | bool) -> None:
    """A product on its way to PSUM; `flags` mark the elements that products before it have written."""
    if flags is True or not findings.wants(PSUMCHECK):
        return
    asked = instruction.attributes.get("accumulate")
    name = buffer.tensor.name
    if asked is True and not buffer.tensor.zeroed:
        message = f"accumulates onto elements of `{name}` that no matmul has written: undefined on the hardware"
        findings.add(PSUMCHECK, message, instruction.where)
    if asked is None and _holds_numbers(buffer, place, flags):
        message = f"the first matmul onto `{name}` replaces what another engine wrote: undefined on the hardware"
        findings.add(PSUMCHECK, message, instruction.where)


def _holds_numbers(buffer: Buffer, place: Place, flags: Flags | bool) -> bool:
    """Whether an engine other than the Tensor engine has put something other than zeros there."""
    defined = buffer.defined_flags(place)
    return defined is not False and bool(np.any(defined & np.logical_not(flags) & (buffer.read(place) != 0)))


def rangecheck(findings: Findings, instruction: Instruction, inputs: Values) -> None:
    """An instruction about to run; its function's arguments may be outside what the Scalar engine approximates."""
    name = instruction.attributes.get("function")
    function = None if name is None else FUNCTIONS.get(str(name))
    if function is None or function.valid is None or "imm0" in inputs or not findings.wants(RANGECHECK):
        return
    data = np.abs(argument(inputs))
    low, high = function.valid
    outside = ((data < low) & (data != 0)) | (data > high)
    if outside.any():
        message = f"'{function.name}' of values whose magnitude is outside [{low:.4g}, {high:.4g}]"
        findings.add(RANGECHECK, message, instruction.where)


def timecheck(findings: Findings, trace: Trace, steps: Sequence[Sequence[int]]) -> None:
    """What was executed of a trace, when it has run; the chip is its target's."""
    chip = load(trace.target)
    if not findings.wants(TIMECHECK) or not isinstance(chip, NeuronChip):
        return
    for finding in advice(trace, steps, chip):
        findings.keep(finding)


def outputcheck(findings: Findings, outputs: Iterable[Buffer]) -> None:
    """The outputs, when all programs have run."""
    if not findings.wants(OUTPUTCHECK):
        return
    for output in outputs:
        tensor, missing = output.tensor, output.undefined_elements()
        if missing:
            message = f"{missing} of {tensor.size} elements of the output `{tensor.name}` have no defined value"
            findings.add(OUTPUTCHECK, message, tensor.where)
