"""Languages switched on for a script, at the moment when it imports them: a script that does not, pays nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType
from typing import Any

from triptych.core.languages import LANGUAGES, Language
from triptych.languages.after_import import AfterImport


class _BeforeImport(MetaPathFinder):
    """Calls `then` right before the first import of one of the names; `then` may put modules into `sys.modules`."""

    def __init__(self, names: Sequence[str], then: Callable[[], None]) -> None:
        self._names = names
        self._then = then
        self.called = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        sys.meta_path.remove(self)
        self.called = True
        self._then()
        # Out of sys.modules until the loader puts it back: a module found there would be executed once more.
        placed = sys.modules.pop(fullname, None)
        return find_spec(fullname) if placed is None else spec_from_loader(fullname, _Placed(placed))


class _Placed(Loader):
    """Loads a module that exists already, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _home(language: Language) -> Any:  # noqa: ANN401  a module with `activate` and `deactivate`
    return import_module(f"triptych.languages.{language.name}")


def _activate(language: Language) -> None:
    home = _home(language)
    if not language.stands_in or not home.installed():  # what somebody else has installed is left alone
        home.activate()


def _finder(language: Language) -> AfterImport | _BeforeImport:
    """Watches for the language's import, or has seen it already."""
    activate = partial(_activate, language)
    if language.stands_in:
        finder = _BeforeImport(language.modules, activate)
        sys.meta_path.insert(0, finder)
        return finder
    (name,) = language.modules
    finder = AfterImport(name, activate)
    finder.watch()
    return finder


@contextmanager
def languages() -> Generator[None]:
    """Every language runs on triptych's machines inside the `with` block."""
    finders = [(language, _finder(language)) for language in LANGUAGES.values() if language.modules]
    try:
        yield
    finally:
        for language, finder in finders:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
            if finder.called:
                _home(language).deactivate()
