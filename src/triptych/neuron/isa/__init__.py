"""The engine table: a row an instruction, its operands, limits, meaning and cost; the trace; verification."""

from triptych.neuron.isa.hardware import Engine, Hardware, Space, hardware
from triptych.neuron.isa.row import ROWS, Row
from triptych.neuron.isa.rows import ROW_MODULES
from triptych.neuron.isa.serialise import from_json, to_json
from triptych.neuron.isa.trace import Instruction, Region, Tensor, Trace
from triptych.neuron.isa.verify import Verifier, find_row, verify

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
    "Verifier",
    "find_row",
    "from_json",
    "hardware",
    "to_json",
    "verify",
]
