"""The engine table: a row an instruction, its operands, limits, meaning and cost; the trace; verification."""

from triptych.neuron.isa import (
    dma_rows,
    gpsimd_rows,
    scalar_rows,
    tensor_rows,
    vector_reduction_rows,
    vector_rows,
    vector_search_rows,
)
from triptych.neuron.isa.hardware import Engine, Hardware, Space, hardware
from triptych.neuron.isa.row import ROWS, Row
from triptych.neuron.isa.serialise import from_json, to_json
from triptych.neuron.isa.trace import Instruction, Region, Tensor, Trace
from triptych.neuron.isa.verify import find_row, verify

ROW_MODULES = (
    tensor_rows, vector_rows, vector_reduction_rows, vector_search_rows, scalar_rows, gpsimd_rows, dma_rows,
)  # fmt: skip
"""The files of the table; importing them fills it."""

__all__ = [
    "ROWS",
    "ROW_MODULES",
    "Engine",
    "Hardware",
    "Instruction",
    "Region",
    "Row",
    "Space",
    "Tensor",
    "Trace",
    "find_row",
    "from_json",
    "hardware",
    "to_json",
    "verify",
]
