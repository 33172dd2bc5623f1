"""Languages switched on for a script, at the moment when it imports them: a script that does not, pays nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def _activate_triton() -> None:
    from triptych.languages import triton

    triton.activate()


def _deactivate_triton() -> None:
    from triptych.languages import triton

    triton.deactivate()


class _AfterImport(MetaPathFinder):
    """Calls `then` right after the module of a name has been imported for the first time."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then
        self.called = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
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
                self.called = True
                self._then()

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 (a loader's method, replaced on this one loader)
        return spec


@contextmanager
def languages() -> Generator[None]:
    """Triton and NKI run on triptych's machines inside the `with` block."""
    from triptych.languages import nki

    if "triton" in sys.modules:
        _activate_triton()
        triton = None
    else:
        triton = _AfterImport("triton", _activate_triton)
        sys.meta_path.insert(0, triton)
    nki.activate()
    try:
        yield
    finally:
        nki.deactivate()
        if triton is not None and triton in sys.meta_path:
            sys.meta_path.remove(triton)
        elif triton is None or triton.called:
            _deactivate_triton()
