"""Whether functions of Python's or ours are still those that they were.

The answer comes from the candidate's own process, and absence proves nothing: nothing rests on it. It names the clumsy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType

from triptych.chips import reading
from triptych.execution import run
from triptych.execution.capture import CapturedArray, CaptureMemory, Recording
from triptych.model import placement, roofline

_WATCHED = (
    "builtins", "time", "os", "sys", "gc", "inspect", "json", "io", "math", "random", "hashlib", "pickle", "struct",
    "threading", "subprocess", "traceback", "linecache", "ctypes", "contextlib", "functools",
)  # fmt: skip
_OURS = "triptych."
LOADED = (placement, reading, roofline, run)
"""Modules of ours that are imported late otherwise. What replaces a function is told by what was there before."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_CLASSES = (CapturedArray, CaptureMemory, Recording)
_KINDS = (type, FunctionType, BuiltinFunctionType)


def identities() -> dict[str, object]:
    """Functions and classes by the names that they have now, in modules and in the classes of a capture."""
    return dict(_named())


def changed_since(before: Mapping[str, object]) -> list[str]:
    """The names that stand for something else now; at most 20.

    An installed library may replace functions of Python's when it is imported late, as torch's does `inspect.getfile`.
    """
    now = identities()
    changed = [name for name, value in before.items() if now.get(name) is not value]
    return [name for name in changed if name.startswith(_OURS) or not _is_installed(now.get(name))][:20]


def _is_installed(value: object) -> bool:
    """Whether it is a function of an installed library."""
    if not isinstance(value, FunctionType):
        return False
    return not _INSTALLED.isdisjoint(Path(value.__code__.co_filename).parts)


def _named() -> Iterator[tuple[str, object]]:
    for name, module in list(sys.modules.items()):
        if name in _WATCHED or name.startswith(_OURS):
            for member, value in list(vars(module).items()):
                if isinstance(value, _KINDS):
                    yield f"{name}.{member}", value
    for kind in _CLASSES:
        for member, value in vars(kind).items():
            if callable(value) or isinstance(value, property):
                yield f"{kind.__name__}.{member}", value
