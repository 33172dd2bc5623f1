"""Settings: the only place that reads environment variables of triptych; everything else receives values."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

from triptych.core.errors import SettingError


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with the environment variable that sets it."""

    chip: str | None = None
    """TRIPTYCH_CHIP: whose roofline; a chip's name or the path of a TOML file. The default chip of the machine where it is
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
    stack_bytes: int = 16 << 10
    """TRIPTYCH_STACK_BYTES: the stack of a thread in kernels whose functions call themselves (a device's limit is 1 KiB
    where a program does not set it)."""
    heap_bytes: int = 8 << 20
    """TRIPTYCH_HEAP_BYTES: the heap that kernels allocate from with `malloc`; CUDA's own default."""
    printf_bytes: int = 1 << 20
    """TRIPTYCH_PRINTF_BYTES: what one launch may print; CUDA's own default. What is beyond is cut."""


def _integer(name: str, default: int, least: int = 1) -> int:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        value = int(text, 0)
    except ValueError:
        value = least - 1
    if value < least:
        raise SettingError(f"{name}={text!r}: expected a whole number of {least} or more")
    return value


def _read_environment() -> Settings:
    base = Settings()
    cache = os.environ.get("TRIPTYCH_CACHE")
    return Settings(
        chip=os.environ.get("TRIPTYCH_CHIP"),
        target=os.environ.get("TRIPTYCH_TARGET"),
        workers=_integer("TRIPTYCH_WORKERS", base.workers),
        cache_folder=Path(cache).expanduser() if cache else base.cache_folder.expanduser(),
        cache_bytes=_integer("TRIPTYCH_CACHE_BYTES", base.cache_bytes, least=0),
        budget=_integer("TRIPTYCH_BUDGET", base.budget),
        stack_bytes=_integer("TRIPTYCH_STACK_BYTES", base.stack_bytes),
        heap_bytes=_integer("TRIPTYCH_HEAP_BYTES", base.heap_bytes),
        printf_bytes=_integer("TRIPTYCH_PRINTF_BYTES", base.printf_bytes, least=0),
    )


_current: ContextVar[Settings | None] = ContextVar("triptych_settings", default=None)


def settings() -> Settings:
    """The settings in force here."""
    return _current.get() or _read_environment()


@contextmanager
def scope(**changes: object) -> Generator[Settings]:
    """Settings changed inside a `with` block: `with scope(workers=1): …`."""
    changed = replace(settings(), **changes)  # type: ignore[arg-type]
    token = _current.set(changed)
    try:
        yield changed
    finally:
        _current.reset(token)
