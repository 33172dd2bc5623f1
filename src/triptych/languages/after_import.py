"""Something to be done right after a module has been imported for the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class AfterImport(MetaPathFinder):
    """Calls `then` right after the module of a name has been imported for the first time; watches from `watch` on."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        """`then` has not been called yet."""
        self._name = name
        self._then = then
        self.called = False

    def watch(self) -> None:
        """From now on; at once where the module has been imported already."""
        if self._name in sys.modules:
            self._call()
        else:
            sys.meta_path.insert(0, self)

    def leave(self) -> None:
        """Watches no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _call(self) -> None:
        self.called = True
        self._then()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Python's own answer, with a loader that tells of the module's end."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if not self.called:  # a reload runs this again
                self._call()

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 (a loader's method, replaced on this one loader)
        return spec
