"""Our own format: `solution(*inputs) -> output or tuple of outputs`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from triptych.judge.capture.request import CaptureSize
from triptych.judge.formats.format import Call, Format, Namespace, NoSolution

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def bind(namespace: Namespace, size: CaptureSize) -> Call:
    """`solution` on all inputs; parameters behind these, and keyword-only ones, get the constant of their name.

    Raises:
        NoSolution: where there is no such function, or it takes something else.
    """
    function: Callable[..., Any] | None = namespace.get("solution")
    if function is None:
        raise NoSolution("the source defines no `solution`")
    if not callable(function):
        raise NoSolution(f"`solution` is a {type(function).__name__}, which cannot be called")
    return _on(function, _constants_for(function, size))


def _on(function: Callable[..., Any], constants: Mapping[str, object]) -> Call:
    bound = partial(function, **constants)

    def call(inputs: Sequence[Any]) -> object:
        return bound(*inputs)

    return call


def _constants_for(function: Callable[..., Any], size: CaptureSize) -> Mapping[str, object]:
    names = [one.name for one in size.inputs]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}  # its call will tell
    positional = [one.name for one in parameters.values() if one.kind in _NAMED[1:] or one.kind.name.startswith("POS")]
    taken = set(positional[: len(names)])
    constants = {
        one.name: size.constants[one.name]
        for one in parameters.values()
        if one.kind in _NAMED and one.name in size.constants and one.name not in taken
    }
    try:
        inspect.signature(function).bind(*names, **constants)
    except TypeError as problem:
        known = ", ".join(size.constants) or "none"
        raise NoSolution(
            f"`solution` does not take the inputs ({', '.join(names)}): {problem}; constants it may take: {known}"
        ) from None
    return constants


SOLUTION = Format(
    "solution",
    "solution",
    "A Python file with a function `solution(*inputs)` that returns the output, or a tuple of outputs.",
    torch=False,
    bind=bind,
)
