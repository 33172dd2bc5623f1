"""The checks that look at a trace while it runs: a function each, which does nothing where its check is not in force.

What AWS's compiler refuses is no check but an error: `neuron/isa/rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import INITCHECK, OUTPUTCHECK, PSUMCHECK, RACECHECK, RANGECHECK
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.trace import Instruction, Region
from triptych.neuron.run.buffers import Buffer
from triptych.neuron.run.definedness import Flags
from triptych.neuron.run.findings import Findings


def initcheck(findings: Findings, instruction: Instruction, name: str, defined: Flags | None) -> None:
    """A store to HBM, to the tensor `name`; `defined` marks its elements that are, None where all are."""
    if defined is None or not findings.wants(INITCHECK):
        return
    count = int(defined.size - np.count_nonzero(defined))
    message = f"{count} of {defined.size} elements stored to `{name}` come from memory that was never written"
    findings.add(INITCHECK, message, instruction.where)


def racecheck(
    findings: Findings, instruction: Instruction, name: str, program: int, stamps: NDArray[Any], mine: int
) -> None:
    """A store to HBM by one program of several; `stamps` say who stored the elements before, 0 where nobody did."""
    if findings.wants(RACECHECK) and np.any((stamps != 0) & (stamps != mine)):
        message = f"program {program} stores to elements of `{name}` that another program of the grid stored"
        findings.add(RACECHECK, message, instruction.where)


def psumcheck(findings: Findings, instruction: Instruction, buffer: Buffer, region: Region, flags: Flags) -> None:
    """A product on its way to PSUM; `flags` mark the elements that products before it have written."""
    if flags.all() or not findings.wants(PSUMCHECK):
        return
    asked = instruction.attributes.get("accumulate")
    name = buffer.tensor.name
    if asked is True and not buffer.tensor.zeroed:
        message = f"accumulates onto elements of `{name}` that no matmul has written: undefined on the hardware"
        findings.add(PSUMCHECK, message, instruction.where)
    if asked is None and _holds_numbers(buffer, region, flags):
        message = f"the first matmul onto `{name}` replaces what another engine wrote: undefined on the hardware"
        findings.add(PSUMCHECK, message, instruction.where)


def _holds_numbers(buffer: Buffer, region: Region, flags: Flags) -> bool:
    """Whether an engine other than the Tensor engine has put something other than zeros there."""
    defined = buffer.defined_view(region)
    known = np.ones(region.shape, np.bool_) if defined is None else defined
    return bool(np.any(known & ~flags & (buffer.view(region) != 0)))


def rangecheck(findings: Findings, instruction: Instruction, inputs: Mapping[str, NDArray[Any] | float]) -> None:
    """An instruction about to run; its function's arguments may be outside what the Scalar engine approximates."""
    function = FUNCTIONS.get(str(instruction.attributes.get("function")))
    if function is None or function.valid is None or "bias" in inputs or "scale" in inputs:
        return
    if not findings.wants(RANGECHECK):
        return
    data = np.abs(np.asarray(inputs["data"], np.float32))
    low, high = function.valid
    outside = ((data < low) & (data != 0)) | (data > high)
    if outside.any():
        message = f"'{function.name}' of values whose magnitude is outside [{low:.4g}, {high:.4g}]"
        findings.add(RANGECHECK, message, instruction.where)


def outputcheck(findings: Findings, outputs: Iterable[Buffer]) -> None:
    """The outputs, when all programs have run."""
    if not findings.wants(OUTPUTCHECK):
        return
    for output in outputs:
        defined, tensor = output.defined, output.tensor
        missing = 0 if defined is None else int(defined.size - np.count_nonzero(defined))
        if missing:
            message = f"{missing} of {tensor.size} elements of the output `{tensor.name}` have no defined value"
            findings.add(OUTPUTCHECK, message, tensor.where)
