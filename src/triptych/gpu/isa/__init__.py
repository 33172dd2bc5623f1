"""The PTX instruction table: importing this package fills it, in the order of the manual's chapters.

Where a section of the PTX ISA manual stands:

    9.7.1   integer.py; fields.py (bit fields, bytes, half words)
    9.7.2   extended.py (the carry flag)
    9.7.3   floating.py (f32, f64); paired.py (f32x2); approximate.py (`.approx` and `.full`)
    9.7.4   narrow.py (f16, bf16 and pairs of them); approximate.py (`ex2`, `tanh`)
    9.7.6   comparison.py
    9.7.7   comparison.py (of 16-bit floats)
    9.7.8   logic.py
    9.7.9   movement.py (`mov`, `cvta`, `isspacep`, `cp.async`); accesses.py (`ld`, `st`); conversion.py (`cvt`);
            formats.py (`cvt` of tensor cores' formats); logic.py (`prmt`); warps.py (`shfl`); hints.py (`prefetch` …)
    9.7.12  control.py (branches, calls, ends)
    9.7.13  control.py (`bar`, `barrier`); warps.py (`vote`, `match`, `redux` …); atomics.py; hints.py (fences)
    9.7.14  warps.py (`ldmatrix`)
    9.7.18  video.py
    9.7.19  control.py (`trap`); hints.py (`nanosleep` …)
    10      special_registers.py, which holds no rows of this table
"""

from triptych.gpu.isa import (
    accesses,
    approximate,
    atomics,
    comparison,
    control,
    conversion,
    extended,
    fields,
    floating,
    formats,
    hints,
    integer,
    logic,
    movement,
    narrow,
    paired,
    video,
    warps,
)
from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.spaces import SPACES, Space
from triptych.gpu.isa.table import TABLE, Form, OperandSlot, Pipe, Row, find_form

MODULES = (
    integer,
    fields,
    extended,
    floating,
    paired,
    narrow,
    approximate,
    comparison,
    logic,
    movement,
    accesses,
    conversion,
    formats,
    control,
    atomics,
    warps,
    video,
    hints,
)
"""The modules that hold the rows."""

__all__ = [
    "MODULES",
    "SPACES",
    "TABLE",
    "Effect",
    "Form",
    "Observation",
    "OperandSlot",
    "Pipe",
    "Row",
    "Space",
    "find_form",
]
