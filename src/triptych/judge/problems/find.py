"""A problem of another suite by the path that it lies at, as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triptych.core.errors import UsageError
from triptych.judge.problems.gpu_mode import gpu_mode_problem, gpu_mode_sizes
from triptych.judge.problems.kernelbench import kernelbench_problem
from triptych.operators.operator import Operator


def problem(path: Path, format: str, sizes: Sequence[str] = ()) -> Operator:
    """The operator of a problem. Its code is run in this process: it is trusted, as a candidate's never is.

    Args:
        path: of `kernelbench` the problem's file, of `gpu_mode` its folder.
        format: whose.
        sizes: of `gpu_mode` one size at most, as `m=64 n=64`; the first of the problem's tests where there is none.

    Raises:
        UsageError: where there is no problem there, or the format has none.
        UnsupportedFeature: where a problem's data is of a kind that operators have not.
    """
    if format == "kernelbench":
        if sizes:
            raise UsageError("a KernelBench problem has one size: its own", hint="leave --size out")
        try:
            return kernelbench_problem(path.read_text(encoding="utf-8"), path.stem)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the problem {path}: {error}") from error
    if format == "gpu_mode":
        if len(sizes) > 1:
            raise UsageError("a GPU MODE problem is judged at one size at a time")
        return gpu_mode_problem(path, _size(sizes[0]) if sizes else gpu_mode_sizes(path)[0])
    raise UsageError(f"the format '{format}' has no problems of its own", hint="name an operator: --operator OP")


def _size(text: str) -> dict[str, int]:
    pairs = [part.partition("=") for part in text.replace(",", " ").split()]
    try:
        return {name: int(value) for name, _, value in pairs}
    except ValueError as error:
        raise UsageError(f"'{text}' is no size", hint="as `m=64 n=64`") from error
