"""Packages whose names are imported when they are first used: what a program never asks for costs it nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def importing(package: str, origins: Mapping[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`: imports a name when it is first asked for, then it is an ordinary attribute.

    `origins` says which names, with spaces between them, come from which module of the package. A type checker is to
    read imports instead, so that it finds misspelt names: keep the function from it by `if not TYPE_CHECKING`.
    """
    modules = {name: module for module, names in origins.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
