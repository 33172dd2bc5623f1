"""Module -> PTX text that parses to the same module (lines and origins aside)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from triptych.gpu.syntax.ast import (
    Address,
    AddressList,
    BranchTargets,
    CallPrototype,
    CallTargets,
    FloatBits,
    Function,
    Group,
    Instruction,
    Integer,
    Label,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Statement,
    Symbol,
    Variable,
    Vector,
)
from triptych.gpu.syntax.initialisers import POINTER_BYTES
from triptych.gpu.syntax.variables import TYPE_BYTES

FLOAT_PREFIXES = {32: "0f", 64: "0d"}


def print_module(module: Module) -> str:
    """The module as PTX text; functions are declared before the variables and bodies that name them."""
    major, minor = module.version
    lines = [f".version {major}.{minor}", f".target {module.target}", f".address_size {module.address_size}", ""]
    lines += [f'.file {number} "{_escape(path)}"' for number, path in module.files.items()]
    for function in module.functions.values():
        if not function.is_entry or function.body is None:
            lines.append(f"{_print_header(function)};")
    for variable in module.variables.values():
        lines.append(f"{print_variable(variable, module.functions)};")
    for function in module.functions.values():
        if function.body is not None:
            lines += ["", print_function(function)]
    return "\n".join(lines) + "\n"


def print_function(function: Function) -> str:
    """A function with its body, or its declaration."""
    if function.body is None:
        return f"{_print_header(function)};"
    declared = {parameter.name for parameter in function.results + function.parameters if parameter.space == "reg"}
    lines = [_print_header(function), "{"]
    lines += [f"\t.reg .{type_name} {name};" for name, type_name in function.registers.items() if name not in declared]
    lines += [f"\t{print_variable(variable)};" for variable in function.variables]
    lines += [print_statement(statement) for statement in function.body]
    return "\n".join([*lines, "}"])


def _print_header(function: Function) -> str:
    linkage = f".{function.linkage} " if function.linkage else ""
    results = f" ({_print_parameters(function.results)})" if function.results else ""
    kind = ".entry" if function.is_entry else ".func"
    header = f"{linkage}{kind}{results} {function.name}({_print_parameters(function.parameters)})"
    for name, numbers in function.directives.items():
        header += f"\n.{name} {', '.join(map(str, numbers))}".rstrip()
    return header


def _print_parameters(parameters: Iterable[Variable]) -> str:
    return ", ".join(print_variable(parameter) for parameter in parameters)


def print_variable(variable: Variable, functions: Iterable[str] = ()) -> str:
    """A declaration without its `;`. `functions` are the names whose addresses are not those of variables."""
    linkage = f".{variable.linkage} " if variable.linkage else ""
    pointer = " .ptr" if variable.is_pointer else ""
    is_natural = variable.count is None and variable.align == TYPE_BYTES[variable.type]
    align = "" if is_natural else f" .align {variable.align}"
    dimension = "" if variable.count is None else f"[{variable.count or ''}]"
    initial = "" if variable.initial is None else f" = {_print_initial(variable, frozenset(functions))}"
    return f"{linkage}.{variable.space}{align} .{variable.type}{pointer} {variable.name}{dimension}{initial}"


def _print_initial(variable: Variable, functions: frozenset[str]) -> str:
    size = TYPE_BYTES[variable.type]
    data = variable.initial or b""
    elements = [str(int.from_bytes(data[at : at + size], "little")) for at in range(0, len(data), size)]
    if variable.type in ("f32", "f64"):
        elements = [_print_float(int(element), 8 * size) for element in elements]
    for offset, symbol in variable.references:
        address = symbol.name if symbol.name in functions else f"generic({symbol.name})"
        address += _print_offset(symbol.offset)
        if size >= POINTER_BYTES // 2:
            elements[offset // size] = address
        else:
            for byte in range(POINTER_BYTES):
                elements[offset + byte] = f"{0xFF << 8 * byte:#x}({address})"
    return elements[0] if variable.count is None else f"{{{', '.join(elements)}}}"


def print_statement(statement: Statement) -> str:
    """A statement of a body, with its `;` or `:`."""
    match statement:
        case Instruction():
            return f"\t{print_instruction(statement)}"
        case Label():
            return f"{statement.name}:"
        case BranchTargets():
            return f"{statement.name}: .branchtargets {', '.join(statement.labels)};"
        case CallTargets():
            return f"{statement.name}: .calltargets {', '.join(statement.functions)};"
        case CallPrototype():
            results, parameters = _print_parameters(statement.results), _print_parameters(statement.parameters)
            return f"{statement.name}: .callprototype ({results}) _ ({parameters});"


def print_instruction(instruction: Instruction) -> str:
    """An instruction with its guard and `;`."""
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{instruction.guard.register.name} "
    operands = ", ".join(map(print_operand, instruction.operands))
    return f"{guard}{instruction.opcode}{' ' if operands else ''}{operands};"


def print_operand(operand: Operand) -> str:
    """An operand as PTX writes it."""
    match operand:
        case Register():
            return operand.name
        case Integer():
            return str(operand.value)
        case FloatBits():
            return _print_float(operand.bits, operand.width)
        case Symbol():
            return f"{operand.name}{_print_offset(operand.offset)}"
        case Address():
            return f"[{_print_based(operand)}]"
        case Not():
            return f"!{operand.operand.name}"
        case Pair():
            return f"{print_operand(operand.first)}|{print_operand(operand.second)}"
        case Sink():
            return "_"
        case Vector():
            return f"{{{', '.join(map(print_operand, operand.elements))}}}"
        case Group():
            return f"({', '.join(map(print_operand, operand.elements))})"
        case AddressList():
            return f"[{', '.join(_print_listed(operand.elements))}]"


def _print_listed(elements: Iterable[Operand]) -> Iterator[str]:
    for element in elements:
        yield _print_based(element) if isinstance(element, Address) else print_operand(element)


def _print_based(address: Address) -> str:
    return f"{print_operand(address.base)}{_print_offset(address.offset)}"


def _print_offset(offset: int) -> str:
    return f"+{offset}" if offset else ""


def _print_float(bits: int, width: int) -> str:
    return f"{FLOAT_PREFIXES[width]}{bits:0{width // 4}X}"


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
