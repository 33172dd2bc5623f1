"""The PTX instruction table: importing this package fills it, in the order of the manual's chapters.

Where a section of the PTX ISA manual stands:

    9.7.1   arithmetic/integer.py; arithmetic/fields.py (bit fields, bytes, half words);
            arithmetic/packed_integers.py (four bytes)
    9.7.2   arithmetic/extended.py (the carry flag)
    9.7.3   arithmetic/floating.py (f32, f64); arithmetic/paired.py (f32x2);
            arithmetic/approximate.py (`.approx` and `.full`)
    9.7.4   arithmetic/narrow.py (f16, bf16 and pairs of them); arithmetic/approximate.py (`ex2`, `tanh`)
    9.7.5   arithmetic/mixed.py (f32 with f16 or bf16)
    9.7.6   arithmetic/comparison.py
    9.7.7   arithmetic/comparison.py (of 16-bit floats)
    9.7.8   arithmetic/logic.py
    9.7.9   memory/movement.py (`mov`, `cvta`, `isspacep`, `cp.async`); memory/accesses.py (`ld`, `st`);
            asynchronous/bulk.py (`cp.async.bulk`, `st.async` …);
            asynchronous/tensor_copy.py (`cp.async.bulk.tensor`, `tensormap`); arithmetic/conversion.py (`cvt`);
            arithmetic/formats.py (`cvt` to tf32, and packing); arithmetic/small_floats.py (`cvt` of 4 to 8 bits);
            arithmetic/logic.py (`prmt`); warps.py (`shfl`); hints.py (`prefetch` …)
    9.7.12  control.py (branches, calls, ends)
    9.7.13  control.py (`bar`, `barrier`); warps.py (`vote`, `match`, `redux` …); memory/atomics.py;
            asynchronous/mbarrier.py; asynchronous/bulk.py (`red.async`); asynchronous/tensor_copy.py;
            hints.py (fences)
    9.7.14  tensor/wmma.py; tensor/products.py (`mma`); tensor/matrices.py (`ldmatrix`, `stmatrix`, `movmatrix`)
    9.7.15  tensor/wgmma.py
    9.7.17  memory/stack.py
    9.7.18  arithmetic/video.py
    9.7.19  control.py (`trap`); hints.py (`nanosleep` …)
    10      special_registers.py, which holds no rows of this table
"""

from triptych.gpu.isa import control, hints, warps
from triptych.gpu.isa.arithmetic import (
    approximate,
    comparison,
    conversion,
    extended,
    fields,
    floating,
    formats,
    integer,
    logic,
    mixed,
    narrow,
    packed_integers,
    paired,
    small_floats,
    video,
)
from triptych.gpu.isa.asynchronous import bulk, mbarrier, tensor_copy
from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.memory import accesses, atomics, movement, stack
from triptych.gpu.isa.spaces import SPACES, Space
from triptych.gpu.isa.table import TABLE, Form, OperandSlot, Pipe, Row, find_form
from triptych.gpu.isa.tensor import matrices, products, wgmma, wmma

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
    products,
    wmma,
    matrices,
    wgmma,
    stack,
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
