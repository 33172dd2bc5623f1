"""Runs a user's script as `python script.py` would: its arguments, its `__main__`, its output, its exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn, TextIO

from triptych.cli.shutdown import Shutdown
from triptych.cli.terminal import EXIT_INTERRUPTED, EXIT_USAGE, Terminal, flush_streams, interruption, standard_stream
from triptych.core.errors import TriptychError, UsageError

_OURS = str(Path(__file__).parents[1])
"""The folder of triptych: its frames are no part of a script's traceback."""


_ADVICE: Mapping[str, str] = {
    "torch": "torch is not installed here: pip install torch (a build for CPUs is enough, for device='cuda' too)",
    "triton": "Triton is not installed here: pip install 'triton>=3.6'",
}
"""What to do where a script wants a module that is not there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a script ended: its exit status, and the exception that it did not catch, if any."""

    status: int
    error: BaseException | None = None


@contextmanager
def told_of_exits(tell: Callable[[Outcome], int]) -> Generator[None]:
    """Inside the `with` block `os._exit`, which ends Python at once, first calls `tell`, and ends with its status.

    A child that the script forks leaves as it asks.
    """
    process, leave = os.getpid(), os._exit

    def told(status: int) -> NoReturn:
        if os.getpid() == process and isinstance(status, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            try:
                status = tell(Outcome(_status(status)))
            except TriptychError as error:
                Terminal().complain(str(error))
                status = EXIT_USAGE
        leave(status)

    os._exit = told
    try:
        yield
    finally:
        os._exit = leave


def run_script(path: str, arguments: Sequence[str]) -> Outcome:
    """Runs it, until its threads and what it registered with `atexit` have ended too.

    An uncaught exception is printed as Python prints it, without triptych's own frames; Ctrl-C is one line, and the
    outcome's error.

    Raises:
        UsageError: where the script cannot be read.
    """
    source = _read(path)
    shutdown = Shutdown(_show_ignored)
    with _as_main(path, arguments) as module, shutdown.recorded():
        outcome = _run(source, module)
        try:
            shutdown.run()
        except KeyboardInterrupt as stop:
            outcome = _interrupted(stop)
        flush_streams()
    return outcome


def _run(source: bytes, module: ModuleType) -> Outcome:
    try:
        exec(compile(source, str(module.__file__), "exec"), module.__dict__)
    except SystemExit as request:
        return Outcome(_status(request.code))
    except KeyboardInterrupt as stop:
        return _interrupted(stop)
    except BaseException as error:
        _advise(error)
        _show(error)
        return Outcome(1, error)
    return Outcome(0)


def _advise(error: BaseException) -> None:
    """Adds to the error of an optional module that is not there how to get it."""
    advice = _ADVICE.get(error.name or "") if isinstance(error, ModuleNotFoundError) else None
    if advice is not None:
        error.add_note(advice)


def _interrupted(stop: KeyboardInterrupt) -> Outcome:
    flush_streams()
    error = interruption(stop)
    Terminal().complain(str(error))
    return Outcome(EXIT_INTERRUPTED, error)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise UsageError(
            f"cannot read the script '{path}': {problem.strerror}", hint="run takes a Python script and its arguments"
        ) from problem


@contextmanager
def _as_main(path: str, arguments: Sequence[str]) -> Generator[ModuleType]:
    """The module `__main__` of the script, and what of `sys` Python sets for a script, until the end."""
    module = ModuleType("__main__")
    file = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    module.__dict__.update(__file__=file, __builtins__=__builtins__, __cached__=None)
    kept = sys.argv, list(sys.path), sys.modules["__main__"], sys.excepthook
    sys.argv = [path, *arguments]
    sys.path[:1] = [str(Path(path).resolve().parent)]
    sys.modules["__main__"] = module
    sys.excepthook = sys.__excepthook__  # typer has put its own there
    try:
        yield module
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"], sys.excepthook = kept


def _status(code: object) -> int:
    """What Python makes of the argument of `sys.exit`: nothing is 0, a number itself, anything else a message and 1.

    A number beyond a C long is -1.
    """
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    _print_error(f"{code}\n")
    return 1


def _print_error(text: str) -> None:
    """Python's way: into the script's standard error, of which it may have made anything."""
    flush_streams()
    stream: TextIO | None = sys.stderr
    with suppress(AttributeError, OSError, ValueError):
        (standard_stream(stderr=True) if stream is None else stream).write(text)


def _show(error: BaseException) -> None:
    flush_streams()
    trace = _after_ours(error.__traceback__)
    if sys.excepthook is not sys.__excepthook__:  # the script has its own way
        sys.excepthook(type(error), error, trace)
        return
    summary = traceback.TracebackException(type(error), error, trace)
    _drop_our_frames(summary)
    _print_error("".join(summary.format() if summary.stack else summary.format_exception_only()))


def _show_ignored(callback: object, error: BaseException) -> None:
    _print_error(f"Exception ignored in atexit callback: {callback!r}\n")
    _show(error)


def _after_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_ours(trace.tb_frame.f_code):
        trace = trace.tb_next
    return trace


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_OURS)


def _drop_our_frames(summary: traceback.TracebackException) -> None:
    kept = [frame for frame in summary.stack if not frame.filename.startswith(_OURS)]
    summary.stack = traceback.StackSummary.from_list(kept)
    for other in (summary.__cause__, summary.__context__):
        if other is not None:
            _drop_our_frames(other)
