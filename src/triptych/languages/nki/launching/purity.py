"""Whether tracing a kernel again must give the same trace: what its Python could depend on besides its arguments.

A kernel is pure if its code, and that of the author's functions that it calls, names nothing outside of itself but
constants, the language, `math`, such functions and harmless builtins, and keeps nothing: it stores no global, outer
variable or attribute. What it names is compared again before a trace is used again, so that a global that was set
anew, or a function of the language that was replaced, is seen. Anything else, a list or a module of the author's, say,
makes a kernel that is traced in each call.
"""

from __future__ import annotations

import builtins
import dis
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

_OURS = "triptych.languages.nki"
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "int", "isinstance",
    "len", "list", "map", "max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "tuple", "zip", "AssertionError", "Exception", "IndexError", "KeyError", "NotImplementedError", "RuntimeError",
    "TypeError", "ValueError",
})  # fmt: skip
"""What depends on its arguments alone, and changes at most those."""
_KEEPING = frozenset({
    "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME", "IMPORT_FROM", "IMPORT_STAR",
    "LOAD_BUILD_CLASS", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_LOCALS", "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_GLOBALS",
})  # fmt: skip
"""Instructions of Python by which something outlives a call, or comes from where nobody looked."""
_OUTER = frozenset({"STORE_DEREF", "DELETE_DEREF"})
_CONSTANTS = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice, np.finfo})
_MISSING = object()


class _ImpureError(Exception):
    """The trace could be another one in the next call."""


@dataclass(slots=True)
class Dependences:
    """What a pure kernel names, as it was when it was traced."""

    names: list[tuple[Mapping[str, Any], str, object]] = field(default_factory=list[tuple[Mapping[str, Any], str, Any]])
    """Names of modules and what they stood for; `_MISSING` where that was a builtin."""
    functions: dict[FunctionType, tuple[CodeType, object]] = field(
        default_factory=dict[FunctionType, tuple[CodeType, object]]
    )
    """The author's functions with their code and defaults."""
    cells: list[tuple[Any, object]] = field(default_factory=list[tuple[Any, object]])
    """The variables of functions around them."""
    modules: set[tuple[ModuleType, CodeType]] = field(default_factory=set[tuple[ModuleType, CodeType]])
    """Modules that were looked into, and for the names of which code: they may name each other."""

    def unchanged(self) -> bool:
        """Whether all of it is as it was."""
        return (
            all(found.get(name, _MISSING) is value for found, name, value in self.names)
            and all(
                one.__code__ is code and one.__defaults__ is defaults and not one.__dict__ and not one.__kwdefaults__
                for one, (code, defaults) in self.functions.items()
            )
            and all(cell.cell_contents is value for cell, value in self.cells)
        )


def dependences(function: object) -> Dependences | None:
    """What a kernel's trace depends on besides its arguments; None for one that is not pure."""
    found = Dependences()
    try:
        _add_function(found, function)
    except _ImpureError:
        return None
    return found


def identity(value: object) -> Hashable:
    """A key that is equal for two arguments only if a kernel cannot tell them apart; the objects must be kept.

    Raises:
        TypeError: for a value that may change, or about which that is not known.
    """
    kind = type(value)
    if kind is tuple:
        return kind, tuple([identity(one) for one in cast("tuple[object, ...]", value)])
    if kind in _CONSTANTS or isinstance(value, np.generic):
        return kind, repr(cast("object", value))  # tells 0.0 and -0.0 apart
    if _is_constant(value):
        return kind, id(value)
    raise TypeError(f"{kind.__name__} may change")


def _is_constant(value: object) -> bool:
    """Whether it is a number, a text, a dtype, a type of numbers or the language's own."""
    kind = cast("type[object]", value) if isinstance(value, type) else type(value)
    return kind in _CONSTANTS or issubclass(kind, np.generic | np.dtype) or _is_ours(value)


def _is_ours(value: object) -> bool:
    """Whether it is a function or a constant object of the language: no kernel, and no array."""
    module = cast("object", value.__module__) if isinstance(value, FunctionType | type) else type(value).__module__
    own = isinstance(module, str) and module.startswith(_OURS)
    return own and not hasattr(value, "capture") and not (hasattr(value, "shape") and hasattr(value, "dtype"))


def _add_function(found: Dependences, function: object) -> None:
    if type(function) is not FunctionType or function.__dict__ or function.__kwdefaults__:
        raise _ImpureError
    if function in found.functions:
        return
    found.functions[function] = (function.__code__, function.__defaults__)
    for default in function.__defaults__ or ():
        _add_value(found, default)
    for cell in function.__closure__ or ():
        try:
            value: object = cell.cell_contents
        except ValueError:  # it has no value yet
            raise _ImpureError from None
        _add_value(found, value)
        found.cells.append((cell, value))
    outer = frozenset(function.__code__.co_freevars)
    for code in _codes(function.__code__):
        _add_code(found, code, function.__globals__, outer)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _add_code(found: Dependences, code: CodeType, names: Mapping[str, Any], outer: frozenset[str]) -> None:
    if any(name.startswith("__") for name in code.co_names):
        raise _ImpureError
    for one in dis.get_instructions(code):
        if one.opname in _KEEPING or (one.opname in _OUTER and one.argval in outer):
            raise _ImpureError
        if one.opname == "LOAD_GLOBAL":
            _add_name(found, names, str(one.argval), code)


def _add_name(found: Dependences, names: Mapping[str, Any], name: str, code: CodeType) -> None:
    value = names.get(name, _MISSING)
    if value is _MISSING:
        if name not in _BUILTINS:
            raise _ImpureError
        found.names.append((names, name, _MISSING))
        found.names.append((vars(builtins), name, vars(builtins)[name]))
        return
    found.names.append((names, name, value))
    if isinstance(value, ModuleType):
        _add_module(found, value, code)
    else:
        _add_value(found, value)


def _add_module(found: Dependences, module: ModuleType, code: CodeType) -> None:
    """What code may take from a module: the attributes that it names."""
    if module is math or (module, code) in found.modules:
        return
    found.modules.add((module, code))
    if not module.__name__.startswith(_OURS):
        raise _ImpureError
    for name in code.co_names:
        value = vars(module).get(name, _MISSING)
        if value is not _MISSING:
            found.names.append((vars(module), name, value))
            if isinstance(value, ModuleType):
                _add_module(found, value, code)
            else:
                _add_value(found, value)


def _add_value(found: Dependences, value: object) -> None:
    if type(value) is tuple:
        for one in cast("tuple[object, ...]", value):
            _add_value(found, one)
    elif not _is_constant(value):
        _add_function(found, value)
