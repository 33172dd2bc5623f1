"""Settings: the only place that reads environment variables of triptych; everything else receives values."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from operator import index
from pathlib import Path
from typing import SupportsIndex, cast

from triptych.core.errors import SettingError, UnknownName
from triptych.core.source import home_expanded


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with the environment variable that sets it."""

    chip: str | None = None
    """TRIPTYCH_CHIP: whose roofline; a chip's name or the path of a TOML file, the machine's default chip where it is
    not said."""
    target: str | None = None
    """TRIPTYCH_TARGET: the compile target (`sm_80`), the chip's own where it is not said."""
    workers: int = field(default_factory=usable_cores)
    """TRIPTYCH_WORKERS: threads over blocks; the number of usable cores where it is not said."""
    cache_folder: Path = Path("~/.cache/triptych")
    """TRIPTYCH_CACHE: the folder of compiled kernels."""
    cache_bytes: int = 1 << 30
    """TRIPTYCH_CACHE_BYTES: the most that the folder may hold; the least recently used go first. 0: no cache."""
    budget: int = 1 << 24
    """TRIPTYCH_BUDGET: the loop iterations that one warp may run before the launch counts as hung."""
    trace_limit: int = 1 << 20
    """TRIPTYCH_TRACE_LIMIT: the instructions and tensors that the trace of an NKI kernel may have; one with more counts
    as hung."""
    stack_bytes: int = 16 << 10
    """TRIPTYCH_STACK_BYTES: the stack of a thread in kernels whose functions call themselves (a device's limit is 1 KiB
    where a program does not set it)."""
    heap_bytes: int = 8 << 20
    """TRIPTYCH_HEAP_BYTES: the heap that kernels allocate from with `malloc`; CUDA's own default."""
    printf_bytes: int = 1 << 20
    """TRIPTYCH_PRINTF_BYTES: what one launch may print; CUDA's own default. What is beyond is cut."""


_DEFAULT = Settings()
_MAY_BE_ZERO = frozenset({"cache_bytes", "printf_bytes"})
"""Whole numbers whose least is 0; that of all others is 1."""
_MOST = (1 << 63) - 1
"""The largest whole number: generated code has it in 64 bits with a sign."""
_VARIABLES: Mapping[str, str] = {"cache_folder": "TRIPTYCH_CACHE"}
"""Variables that are not called as their setting is."""


def _checked(name: str, value: object, shown: str) -> object:
    """A setting's value, numbers and paths also from text; `shown` is how messages write it.

    Raises:
        SettingError: for a value that it does not take.
    """
    default = getattr(_DEFAULT, name)
    if isinstance(default, Path):
        if isinstance(value, str | Path) and str(value):
            return _home_expanded(Path(value), shown)
        raise SettingError(f"{shown}: expected the path of a folder")
    if isinstance(default, int):
        least = 0 if name in _MAY_BE_ZERO else 1
        number = _whole(value)
        if number is None or not least <= number <= _MOST:
            most = "" if number is None or number < least else ", below 2**63"
            raise SettingError(f"{shown}: expected a whole number of {least} or more{most}")
        return number
    if value is None or (isinstance(value, str) and value):
        return value
    raise SettingError(f"{shown}: expected a name")


def _home_expanded(path: Path, shown: str) -> Path:
    expanded = home_expanded(path)
    if str(expanded).startswith("~"):
        raise SettingError(f"{shown}: there is no home directory of {path.parts[0]}", hint="name a folder by its path")
    return expanded


def _whole(value: object) -> int | None:
    try:
        return int(value, 0) if isinstance(value, str) else index(cast("SupportsIndex", value))
    except (TypeError, ValueError):
        return None


def _read_environment() -> Settings:
    found: dict[str, object] = {}
    for setting in fields(Settings):
        variable = _VARIABLES.get(setting.name, f"TRIPTYCH_{setting.name.upper()}")
        text = os.environ.get(variable)
        default = getattr(_DEFAULT, setting.name)
        if text:
            found[setting.name] = _checked(setting.name, text, f"{variable}={text!r}")
        elif isinstance(default, Path):
            found[setting.name] = _home_expanded(default, f"{variable} is not set, and for {default}")
    return Settings(**found)  # type: ignore[arg-type]


_current: ContextVar[Settings | None] = ContextVar("triptych_settings", default=None)


def settings() -> Settings:
    """The settings in force here."""
    return _current.get() or _read_environment()


@contextmanager
def scope(**changes: object) -> Generator[Settings]:
    """Settings changed inside a `with` block: `with scope(workers=1): …`.

    Raises:
        UnknownName: for a setting that there is not.
        SettingError: for a value that a setting does not take.
    """
    names = [setting.name for setting in fields(Settings)]
    for name in changes:
        if name not in names:
            raise UnknownName.of("setting", name, names)
    checked = {name: _checked(name, value, f"{name}={value!r}") for name, value in changes.items()}
    changed = replace(settings(), **checked)  # type: ignore[arg-type]
    token = _current.set(changed)
    try:
        yield changed
    finally:
        _current.reset(token)
