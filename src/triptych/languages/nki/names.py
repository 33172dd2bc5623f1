"""The names of NKI's modules: gathered from where they are defined; near ones are offered, missing ones named."""

from __future__ import annotations

from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import NoReturn

from triptych.core.errors import UnknownNkiName
from triptych.languages.calling import author_location
from triptych.languages.nki.listing import LISTING


def gather(module: str, *parts: ModuleType) -> Mapping[str, object]:
    """What the parts define of the names that NKI's module has, and `__all__`, for the module's own namespace."""
    found: dict[str, object] = {}
    for name in sorted(LISTING[module]):
        things = [vars(part)[name] for part in parts if name in vars(part) and not _imported(vars(part)[name], part)]
        assert all(thing is things[0] for thing in things), f"{module}.{name} is defined twice"
        if things:
            found[name] = things[0]
    return {**found, "__all__": list(found)}


def _imported(thing: object, part: ModuleType) -> bool:
    """Whether a function or class comes from elsewhere, such as `math.prod`, which is not `nl.prod`."""
    return isinstance(thing, FunctionType | BuiltinFunctionType | type) and thing.__module__ != part.__name__


def missing(module: str, known: Mapping[str, object]) -> list[str]:
    """The names that NKI's module has and the namespace `known` lacks, sorted."""
    return sorted(LISTING[module] - set(known))


def missing_name(module: str, name: str, known: Mapping[str, object]) -> NoReturn:
    """Raise the error for a name that the namespace `known` of a module lacks.

    Raises:
        UnknownNkiName: naming the line, with near names or with the remark that NKI has it and this version does not.
        AttributeError: for Python's own names (`__path__` …), which are asked for in silence.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if name in LISTING[module]:
        raise UnknownNkiName(
            f"{module}.{name} is not implemented in this version", where=author_location(), hint="NKI itself has it"
        )
    raise UnknownNkiName.of(f"name of {module}", name, sorted(LISTING[module] & set(known)), author_location())
