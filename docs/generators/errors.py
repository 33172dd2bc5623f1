"""The page of errors, from the catalogue's classes and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from generators.markdown import code, first_paragraph, table
from triptych.core import errors
from triptych.core.errors import TriptychError

_HEAD = """\
# Errors

Every error that a user's input can cause is a class of `triptych.core.errors`, and a name of `triptych` too. An error
holds `message` (what is wrong and what was expected), `where` (file and line, where known) and `hint` (what to do);
`str(error)` is all three. The command line prints it without a traceback and exits with 2; under `triptych run` an
error that the script does not catch is the script's own, and its exit status is 1.

"""
_FAULTS = """\
## What faults know

A fault's text, in values; `None` is what the machine does not know. They cannot be set. `check` is the row of [the
table of checks](checks.md) whose finding the fault is.

"""


def classes() -> Iterator[type[TriptychError]]:
    """The catalogue, in the order of the source."""
    for thing in vars(errors).values():
        if inspect.isclass(thing) and issubclass(thing, TriptychError):
            yield thing


def page() -> str:
    """The page's Markdown."""
    rows = [(code(kind.__name__), ", ".join(_bases(kind)), first_paragraph(kind)) for kind in classes()]
    kinds = table(("error", "is also", "meaning"), rows)
    return _HEAD + kinds + _FAULTS + table(("attribute", "meaning"), _fields()).rstrip() + "\n"


def _fields() -> Iterator[tuple[str, str]]:
    """The properties of the faults."""
    for kind in classes():
        for name, member in vars(kind).items():
            if isinstance(member, property):
                yield code(f"{kind.__name__}.{name}"), first_paragraph(member)


def _bases(kind: type[TriptychError]) -> list[str]:
    return [code(base.__name__) for base in kind.__bases__]
