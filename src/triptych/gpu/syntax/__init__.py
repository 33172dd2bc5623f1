"""PTX text <-> Module: `parse` and `parse_lazily` read it, `print_module` writes it; `ast` is what stands between."""

from triptych.gpu.syntax.parse_module import parse, parse_lazily
from triptych.gpu.syntax.print_module import (
    print_function,
    print_instruction,
    print_module,
    print_operand,
    print_statement,
    print_variable,
)

__all__ = [
    "parse",
    "parse_lazily",
    "print_function",
    "print_instruction",
    "print_module",
    "print_operand",
    "print_statement",
    "print_variable",
]
