"""Whether functions of Python's or ours are still those that they were.

The answer comes from the candidate's own process, and absence proves nothing: nothing rests on it. It names the clumsy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType

from triptych.execution.capture import CapturedArray, CaptureMemory, Recording

_WATCHED = (
    "builtins", "time", "os", "sys", "gc", "inspect", "json", "io", "math", "random", "hashlib", "pickle", "struct",
    "threading", "subprocess", "traceback", "linecache", "ctypes", "contextlib", "functools",
)  # fmt: skip
_OURS = "triptych."
_CLASSES = (CapturedArray, CaptureMemory, Recording)
_KINDS = (type, FunctionType, BuiltinFunctionType)


def identities() -> dict[str, object]:
    """Functions and classes by the names that they have now, in modules and in the classes of a capture."""
    return dict(_named())


def changed_since(before: Mapping[str, object]) -> list[str]:
    """The names that stand for something else now; at most 20."""
    now = identities()
    return [name for name, value in before.items() if now.get(name) is not value][:20]


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
