"""Which Triton is installed: asked before anything of it is used, so that one that does not do is told as such."""

from __future__ import annotations

import re
import warnings
from importlib import import_module

from triptych.core.errors import UnsupportedFeature

TESTED = ((3, 6), (3, 9))
"""The oldest and the newest version that all of this package was tried with."""
_OLDEST, _NEWEST = (".".join(map(str, version)) for version in TESTED)
_HINT = f"pip install 'triton>={_OLDEST}'"


def installed_version() -> tuple[int, int]:
    """Its version: (3, 9) for 3.9.0.

    Raises:
        UnsupportedFeature: where there is none.
    """
    return _numbers(_version())


def check_version() -> None:
    """Whether all of this package can hold for the Triton that is installed: tells of one that nobody has tried, once.

    Raises:
        UnsupportedFeature: where there is none, and for one that is too old.
    """
    version = _version()
    if _numbers(version) < TESTED[0]:
        raise UnsupportedFeature(f"Triton {version} is too old: triptych works with {_OLDEST} to {_NEWEST}", hint=_HINT)
    if _numbers(version) > TESTED[1]:
        message = f"triptych was tried with Triton {_OLDEST} to {_NEWEST}, not with {version}"
        warnings.warn(message, stacklevel=1)  # of this line, so that Python shows it once


def _version() -> str:
    try:
        return str(import_module("triton").__version__)
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise UnsupportedFeature("Triton is not installed", hint=_HINT) from None


def _numbers(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))
