"""NVRTC, NVIDIA's runtime compiler, by ctypes: CUDA C++ -> PTX with neither a GPU nor a driver.

The functions and their results are those of the NVRTC manual; a result of 0 is success.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from triptych.core.errors import CompileError
from triptych.core.forks import library_lock
from triptych.core.source import SourceLocation
from triptych.languages.cuda.toolkit import toolkit, where_to_get

_COMPILATION_FAILED = 6
_NAME_EXPRESSION_INVALID = 8
_LOCK = library_lock()

_FIRST_ERROR = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error", re.MULTILINE)
_MISSING_HEADER = re.compile(r'(?:cannot|could not) open source file "(?P<name>[^"\n]+)"')
_HOST_ONLY = re.compile(r'identifier "cuda(?:Malloc|Memcpy|Free|DeviceSynchronize|Memset|GetLastError|Event)|"main"')


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler made: PTX, its log (warnings), and the PTX name of each name expression."""

    ptx: str
    log: str
    lowered: Mapping[str, str]


@cache
def _library() -> ctypes.CDLL:
    path = toolkit().library
    for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(builtins))  # the compiler asks for it by name, and finds what is loaded without any search path
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _check(result: int, what: str) -> None:
    if result:
        reason = _library().nvrtcGetErrorString(result).decode()
        raise CompileError(f"NVRTC: {what}: {reason}")


@cache
def version() -> tuple[int, int]:
    """The compiler's version, that of the CUDA toolkit."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "version")
    return major.value, minor.value


@cache
def architectures() -> tuple[int, ...]:
    """The compute capabilities that it compiles for, as 80 for 8.0."""
    library, count = _library(), ctypes.c_int()
    _check(library.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "supported architectures")
    found = (ctypes.c_int * count.value)()
    _check(library.nvrtcGetSupportedArchs(found), "supported architectures")
    return tuple(found)


def compile_program(source: str, name: str, options: Sequence[str], expressions: Sequence[str] = ()) -> Compiled:
    """Compiles one translation unit; `expressions` name kernels to instantiate (`saxpy<float>`, `&ns::kernel<int>`).

    Raises:
        CompileError: with the compiler's own log, at the line of the first error.
    """
    library, program = _library(), ctypes.c_void_p()
    with _LOCK:
        created = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        _check(created, "create program")
        try:
            return _compile(library, program, options, expressions)
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))


def _compile(
    library: ctypes.CDLL, program: ctypes.c_void_p, options: Sequence[str], expressions: Sequence[str]
) -> Compiled:
    for expression in expressions:
        _check(library.nvrtcAddNameExpression(program, expression.encode()), f"name '{expression}'")
    encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    result: int = library.nvrtcCompileProgram(program, len(options), encoded)
    log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program).strip()
    if result in (_COMPILATION_FAILED, _NAME_EXPRESSION_INVALID) or (result and log):
        raise _failure(log)
    _check(result, "compile")
    lowered = {expression: _lowered(library, program, expression) for expression in expressions}
    return Compiled(_text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program), log, lowered)


def _text(size_of: Callable[..., int], read: Callable[..., int], program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)), "output size")
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(read(program, buffer), "output")
    return buffer.value.decode(errors="replace")


def _lowered(library: ctypes.CDLL, program: ctypes.c_void_p, expression: str) -> str:
    name = ctypes.c_char_p()
    _check(library.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name)), f"name '{expression}'")
    return (name.value or b"").decode()


def _failure(log: str) -> CompileError:
    found = _FIRST_ERROR.search(log)
    where = SourceLocation(found["file"], int(found["line"])) if found else None
    missing = _MISSING_HEADER.search(log)
    hint = where_to_get(missing["name"]) if missing else None
    if _HOST_ONLY.search(log):
        hint = "NVRTC compiles device code alone: put host code between #ifndef __CUDACC_RTC__ and #endif"
    return CompileError(log or "the compiler gave no reason", where=where, hint=hint)
