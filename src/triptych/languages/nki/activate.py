"""`activate()` lets `import nki` and `import neuronxcc.nki` find the modules here; nothing is shadowed before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from types import ModuleType

from triptych.core.errors import UsageError
from triptych.languages.nki import collectives, compiler, isa, language, nki, nki_beta1, typing
from triptych.languages.nki.isa_functions import enums
from triptych.languages.nki.tracing import dtypes

_NAMES: Mapping[str, ModuleType] = {
    "nki": nki,
    "nki.language": language,
    "nki.dtype": dtypes,
    "nki.isa": isa,
    "nki.isa.constants": enums,
    "nki.typing": typing,
    "nki.collectives": collectives,
    "neuronxcc.nki": nki_beta1,
    "neuronxcc.nki.language": language,
    "neuronxcc.nki.isa": isa,
    "neuronxcc.nki.isa.constants": enums,
    "neuronxcc.nki.typing": typing,
    "neuronxcc.nki.compiler": compiler,
}
_replaced: dict[str, ModuleType | None] = {}


def installed() -> bool:
    """Whether AWS's own package is on the path. The empty placeholders of PyPI do not count: they have no `jit`."""
    for name, child in (("nki", "language"), ("neuronxcc", "nki")):
        found = PathFinder.find_spec(name)
        places = found.submodule_search_locations if found is not None else None
        if places and PathFinder.find_spec(f"{name}.{child}", list(places)) is not None:
            return True
    return False


def activate(*, force: bool = False) -> None:
    """Put the modules into `sys.modules`. Does nothing where they are there already.

    Raises:
        UsageError: where AWS's own package is installed, unless `force` is given.
    """
    if _replaced:
        return
    if installed() and not force:
        raise UsageError(
            "AWS's own NKI package is installed, and is left alone",
            hint="activate(force=True) puts triptych's in its place until deactivate()",
        )
    modules = dict(_NAMES)
    if not isinstance(sys.modules.get("neuronxcc"), ModuleType):
        package = ModuleType("neuronxcc", "Holds triptych's nki.")
        package.__path__ = []
        modules["neuronxcc"] = package
    for name, module in modules.items():
        _replaced[name] = sys.modules.get(name)
        sys.modules[name] = module
    _set_parent(nki_beta1)


def _set_parent(module: ModuleType | None) -> None:
    """`neuronxcc.nki` as an attribute, for `from neuronxcc import nki`."""
    parent = sys.modules.get("neuronxcc")
    if parent is not None:
        if module is None:
            vars(parent).pop("nki", None)
        else:
            vars(parent)["nki"] = module


def deactivate() -> None:
    """Undo `activate()`: the names mean what they meant before."""
    _set_parent(_replaced.get("neuronxcc.nki"))
    for name, module in _replaced.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    _replaced.clear()
