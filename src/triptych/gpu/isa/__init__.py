"""The PTX instruction table: importing this package fills it, in the order of the manual's chapters.

Where a section of the PTX ISA manual stands:

    9.7.1   integer.py; fields.py (bit fields, bytes, half words); packed_integers.py (four bytes)
    9.7.2   extended.py (the carry flag)
    9.7.3   floating.py (f32, f64); paired.py (f32x2); approximate.py (`.approx` and `.full`)
    9.7.4   narrow.py (f16, bf16 and pairs of them); approximate.py (`ex2`, `tanh`)
    9.7.5   mixed.py (f32 with f16 or bf16)
    9.7.6   comparison.py
    9.7.7   comparison.py (of 16-bit floats)
    9.7.8   logic.py
    9.7.9   movement.py (`mov`, `cvta`, `isspacep`, `cp.async`); bulk.py (`cp.async.bulk`, `st.async` …);
            tensor_copy.py (`cp.async.bulk.tensor`, `tensormap`); accesses.py (`ld`, `st`); conversion.py (`cvt`);
            formats.py (`cvt` to tf32, and packing); small_floats.py (`cvt` of 4 to 8 bits); logic.py (`prmt`);
            warps.py (`shfl`); hints.py (`prefetch` …)
    9.7.12  control.py (branches, calls, ends)
    9.7.13  control.py (`bar`, `barrier`); warps.py (`vote`, `match`, `redux` …); atomics.py; mbarrier.py;
            bulk.py (`red.async`); tensor_copy.py; hints.py (fences)
    9.7.14  wmma.py; tensor.py (`mma`); matrices.py (`ldmatrix`, `stmatrix`, `movmatrix`)
    9.7.15  wgmma.py
    9.7.18  video.py
    9.7.19  control.py (`trap`); hints.py (`nanosleep` …)
    10      special_registers.py, which holds no rows of this table
"""

from triptych.gpu.isa import (
    accesses,
    approximate,
    atomics,
    bulk,
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
    matrices,
    mbarrier,
    mixed,
    movement,
    narrow,
    packed_integers,
    paired,
    small_floats,
    tensor,
    tensor_copy,
    video,
    warps,
    wgmma,
    wmma,
)
from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.spaces import SPACES, Space
from triptych.gpu.isa.table import TABLE, Form, OperandSlot, Pipe, Row, find_form

MODULES = (
    integer,
    fields,
    packed_integers,
    extended,
    floating,
    paired,
    narrow,
    mixed,
    approximate,
    comparison,
    logic,
    movement,
    accesses,
    conversion,
    formats,
    small_floats,
    control,
    atomics,
    mbarrier,
    bulk,
    tensor_copy,
    warps,
    tensor,
    wmma,
    matrices,
    wgmma,
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
