"""The PTX instruction table: importing this package fills it, in the order of the manual's chapters."""

from triptych.gpu.isa import (
    approximate,
    atomics,
    control,
    conversion,
    floating,
    integer,
    logic,
    movement,
    narrow,
    warps,
)
from triptych.gpu.isa.table import TABLE, Effect, Form, OperandSlot, Pipe, Row, find_form

MODULES = (integer, floating, narrow, approximate, logic, movement, conversion, control, atomics, warps)
"""The modules that hold the rows."""

__all__ = ["MODULES", "TABLE", "Effect", "Form", "OperandSlot", "Pipe", "Row", "find_form"]
