"""Names that a module of NKI does not have: near ones are offered, and what is missing here is said to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from triptych.core.errors import UnknownNkiName
from triptych.languages.nki.frames import user_location


def missing_name(module: str, name: str, known: Iterable[str], not_yet: frozenset[str]) -> NoReturn:
    """Raise the error for a name that `module` lacks.

    Raises:
        UnknownNkiName: naming the line, with near names or with the remark that NKI has it and this version does not.
        AttributeError: for Python's own names (`__path__` …), which are asked for in silence.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if name in not_yet:
        raise UnknownNkiName(
            f"{module}.{name} is not implemented in this version", where=user_location(), hint="NKI itself has it"
        )
    raise UnknownNkiName.of(f"name of {module}", name, known, user_location())
