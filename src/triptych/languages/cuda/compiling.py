"""CUDA C++ -> PTX, through the cache on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from triptych.core.cache import cache, key_of
from triptych.core.errors import CompileError, UsageError
from triptych.core.source import BUILT_IN_HEADER, SourceLocation, home_expanded
from triptych.execution.targets import check_target
from triptych.languages.cuda import nvrtc
from triptych.languages.cuda.includes import included_files
from triptych.languages.cuda.nvrtc import Compiled
from triptych.languages.cuda.source import Source
from triptych.languages.cuda.toolkit import STUBS, toolkit

CACHE_KIND = "cuda"
_BASE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--generate-line-info": ("generate-line-info", "lineinfo"),
    "--device-as-default-execution-space": ("device-as-default-execution-space", "default-device"),
    "--std=c++17": ("std",),
    "--pre-include=math.h": (),  # INFINITY, NAN, M_PI: nvcc's sources have them without an include
}
"""What is always asked for, and the names by which an author asks for it instead; a file included first is one more."""
_INCLUDE_OPTION = re.compile(r"(?:-I|--include-path=|-include-path=)(?P<folder>.+)")
_INCLUDE_NAMES = ("-I", "--include-path")
_PRE_INCLUDE = ("-include", "--pre-include")


def compile_source(source: Source, target: str, options: Sequence[str], expressions: Sequence[str] = ()) -> Compiled:
    """The PTX of a source for a target; made anew where the source, its headers, the options or the compiler changed.

    Raises:
        CompileError: with the compiler's own log, at the line of the first error.
        UnknownName: for a target (`sm_80`, `sm_90a`) that the compiler has not.
    """
    check_target(target, "gpu", nvrtc.architectures())
    _refuse_nul(source)
    everything = _options(source, target, options)
    key = _key(source, everything, expressions)
    if key is None:
        return _compile(source, everything, expressions)
    data = cache().fetch(CACHE_KIND, key, lambda: _dump(_compile(source, everything, expressions)))
    return Compiled(**json.loads(data))


def header_text(source: Source, options: Sequence[str]) -> str:
    """The texts of the user's headers that the source may include, whatever `#if` says, one behind the other."""
    headers = included_files(source.text, source.folder, _search(options)) or {}
    return "\n".join(data.decode(errors="replace") for data in headers.values())


def listed(texts: Sequence[str]) -> tuple[str, ...]:
    """The texts; one string alone, which is a sequence of characters, is a mistake."""
    if isinstance(texts, str):
        raise UsageError(f"expected a list of strings, got {texts!r}", hint=f"write [{texts!r}]")
    return tuple(texts)


def check_options(options: Sequence[str]) -> tuple[str, ...]:
    """The options, folders of headers as absolute paths; one string alone is a mistake."""
    found: list[str] = []
    waiting = iter(listed(options))
    for option in waiting:
        match = _INCLUDE_OPTION.fullmatch(option)
        folder = next(waiting, "") if option in _INCLUDE_NAMES else match["folder"] if match else None
        found.append(option if folder is None else f"--include-path={home_expanded(folder).resolve()}")
    return tuple(found)


def _options(source: Source, target: str, options: Sequence[str]) -> list[str]:
    folders = [*([source.folder] if source.folder else []), *toolkit().includes, STUBS]
    architecture = f"--gpu-architecture={target.replace('sm_', 'compute_')}"
    given = {_name_of(option) for option in options}
    base = [option for option, names in _BASE_OPTIONS.items() if given.isdisjoint(names)]
    return [architecture, *base, *options, *(f"--include-path={folder}" for folder in folders)]


def _name_of(option: str) -> str:
    return option.partition("=")[0].lstrip("-")


def _refuse_nul(source: Source) -> None:
    """The compiler reads a source up to its first NUL, and would pass over the rest in silence."""
    head, nul, _ = source.text.partition("\0")
    if nul:
        raise CompileError(
            "the source has a NUL character, behind which the compiler would read nothing",
            where=SourceLocation(source.file, source.line + head.count("\n")),
            hint="remove it",
        )


def _dump(compiled: Compiled) -> bytes:
    return json.dumps(asdict(compiled)).encode()


def _compile(source: Source, options: Sequence[str], expressions: Sequence[str]) -> Compiled:
    compiled = nvrtc.compile_program(source.placed_text, source.file, options, expressions)
    if not compiled.ptx.strip():
        raise CompileError(
            f"the compiler made no PTX of {source.file}; its options were {' '.join(options)}",
            hint="leave out what makes it write something else (-dlto and its like make code for a linker)",
        )
    return Compiled(_with_own_names(compiled.ptx, source.file), compiled.log, compiled.lowered)


def _with_own_names(ptx: str, file: str) -> str:
    """The compiler puts the current folder in front of names that are no absolute paths; ours name no file there.

    Nor does that of the header which it has built in.
    """
    names = "|".join(map(re.escape, (BUILT_IN_HEADER, *([] if file.startswith("/") else [file]))))
    pattern = re.compile(rf'^(\s*\.file\s+\d+\s+)"[^"\n]*/({names})"', re.MULTILINE)
    return pattern.sub(r'\1"\2"', ptx)


def _search(options: Sequence[str]) -> list[Path]:
    """The user's own folders of headers."""
    matches = (_INCLUDE_OPTION.fullmatch(option) for option in options)
    toolkits = {*map(str, toolkit().includes), str(STUBS)}
    return [Path(match["folder"]) for match in matches if match and match["folder"] not in toolkits]


def _key(source: Source, options: Sequence[str], expressions: Sequence[str]) -> str | None:
    """Everything that decides the PTX; None where that cannot be known, and nothing may be kept."""
    if any(option.startswith(_PRE_INCLUDE) and option not in _BASE_OPTIONS for option in options):
        return None
    headers = included_files(source.text, source.folder, _search(options))
    if headers is None:
        return None
    compiler = f"{nvrtc.version()} {[folder.stat().st_mtime_ns for folder in (*toolkit().includes, STUBS)]}"
    parts: list[str | bytes] = [compiler, source.file, source.placed_text, *options, "", *expressions, ""]
    for path, contents in headers.items():
        parts += [str(path), contents]
    return key_of(*parts)
