"""What ended a candidate's Python: a row of `reasons.py`, a message and a line. It runs where the candidate does."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.core.errors import (
    BudgetExceeded,
    CaptureError,
    CompileError,
    LaunchError,
    NkiError,
    PtxSyntaxError,
    TriptychError,
    UnsupportedFeature,
    UnsupportedInstruction,
    ValueTouched,
)
from triptych.core.source import SourceLocation
from triptych.judge.formats.format import NoSolution

_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (NoSolution, "no_solution"),
    (ValueTouched, "touched_values"),
    (CaptureError, "plan_refused"),
    (BudgetExceeded, "capture_timed_out"),
    (UnsupportedFeature, "unsupported"),
    (UnsupportedInstruction, "unsupported"),
    (CompileError, "compile_error"),
    (PtxSyntaxError, "compile_error"),
    (NkiError, "compile_error"),
    (LaunchError, "launch_refused"),
    (MemoryError, "out_of_memory"),
)
"""The first that fits counts; all others are `host_error`."""
_TRITON = {
    "CompilationError": "compile_error",
    "UnsupportedLanguageConstruct": "compile_error",
    "CompileTimeAssertionFailure": "compile_error",
    "PTXASError": "compile_error",
    "OutOfResources": "launch_refused",
}
"""Triton's own, by name: whoever asks may not have imported it."""
_MOST_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a candidate was not captured."""

    code: str
    message: str
    where: SourceLocation | None = None


def failure_of(error: BaseException, file: str) -> Failure:
    """The failure that an exception of a candidate's is; `file` is how the candidate's source is called."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), None)
    if code is None:
        names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("triton.")]
        code = next((_TRITON[name] for name in names if name in _TRITON), "host_error")
    where = error.where if isinstance(error, TriptychError) else None
    if where is None or where.file != file:
        where = _line_in(error, file) or where
    return Failure(code, _text(error), where)


def _text(error: BaseException) -> str:
    if isinstance(error, TriptychError):
        text = error.message if error.hint is None else f"{error.message}\n{error.hint}"
    else:
        try:
            said = str(error)
        except BaseException as problem:  # the candidate wrote its `__str__`
            said = f"<no text: {type(problem).__name__}>"
        text = said if isinstance(error, NoSolution) else f"{type(error).__name__}: {said}".removesuffix(": ")
    return text.encode("utf-8", "replace").decode()[:_MOST_CHARACTERS]


def _line_in(error: BaseException, file: str) -> SourceLocation | None:
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = SourceLocation(file, trace.tb_lineno)
        trace = trace.tb_next
    return found
