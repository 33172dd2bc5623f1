"""Readable names of C++ symbols, by the demangler of the C++ runtime that numpy needs anyway."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

_UNIT = re.compile(r"^_INTERNAL_\w+::")
"""What NVRTC puts before the names that a unit keeps to itself."""
_Demangle = Callable[[str], str | None]


def _load() -> _Demangle:
    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return lambda symbol: None
    function = runtime.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free = ctypes.CDLL(None).free
    free.restype = None
    free.argtypes = [ctypes.c_void_p]

    def demangle(symbol: str) -> str | None:
        status = ctypes.c_int()
        address: int | None = function(symbol.encode(), None, None, ctypes.byref(status))
        if not address:
            return None
        try:
            return ctypes.string_at(address).decode()
        finally:
            free(address)

    return demangle


_demangle = _load()


@cache
def demangle(symbol: str) -> str | None:
    """`void saxpy<float>(int, float*)` of a mangled name; None for a plain one, or where no C++ runtime is found."""
    return _demangle(symbol) if symbol.startswith("_Z") else None


def readable(symbol: str) -> str:
    """A kernel's name as its author would write it, without return type and parameters: `saxpy<float>`."""
    text = demangle(symbol)
    return symbol if text is None else split_function(text)[0]


def variable_name(symbol: str) -> str:
    """A variable's name as its author would write it: `ns::table`, `table<float>`, `(anonymous namespace)::table`."""
    return _UNIT.sub("", demangle(symbol) or symbol)


def unqualified(name: str) -> str:
    """A readable name without its namespaces: `table<float>`."""
    head, bracket, arguments = name.partition("<")
    return head.rsplit("::", 1)[-1] + bracket + arguments


def name_expression(symbol: str) -> str:
    """What tells a kernel from others of its name: `(void(*)(int*))scale`, which C++ takes for the function's name."""
    text = demangle(symbol)
    if text is None:
        return symbol
    name, types = split_function(text)
    return f"(void(*)({', '.join(types)})){name}"


def split_function(text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the parameters' types of a demangled function."""
    opening = _opening(text)
    name = split_outside(text[:opening], " ")[-1]
    inner = text[opening + 1 : -1].strip()
    return name, () if inner in ("", "void") else tuple(split_outside(inner, ","))


def _opening(text: str) -> int:
    """Where the parenthesis that closes at the end of `text` opens."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def split_outside(text: str, separator: str) -> list[str]:
    """`text` cut at each separator that lies in no brackets; pieces are stripped, empty ones left out."""
    pieces, depth = [""], 0
    for character in text:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(character, 0)
        if character == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces if piece.strip()]
