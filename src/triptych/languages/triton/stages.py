"""Triton's compilation up to PTX, and its disk cache kept apart from that of a real GPU."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from hashlib import sha256
from typing import Any

CACHE_KEY = "triptych-ptx-1"
"""Part of Triton's cache keys: what is cached under it is PTX where a GPU's driver would want a cubin."""

Stage = Callable[[Any, Any], Any]
Hook = Callable[..., Any]


def make_stage_hook(previous: Hook | None) -> Hook:
    """The hook on the list of compilation stages (`knobs.runtime.add_stages_inspection_hook`, 3.6 to 3.9).

    Called without arguments (from 3.7 on) it gives (cache key, hash); called with the stages it replaces the last one,
    `ptxas`, by nothing. A hook that was there before still has its turn.
    """

    def hook(
        backend: object = None,
        stages: MutableMapping[str, Stage] | None = None,
        options: object = None,
        language: object = None,
        capability: object = None,
    ) -> tuple[str, str] | None:
        if stages is None:
            key, digest = previous() if previous else ("", "")
            return key + CACHE_KEY, digest + CACHE_KEY
        if previous:
            previous(backend, stages, options, language, capability)
        if "cubin" in stages:
            stages["cubin"] = keep_ptx
        return None

    return hook


def keep_ptx(ptx: str, metadata: object) -> bytes:
    """The stage in place of `ptxas`: the binary is the PTX text."""
    return ptx.encode()


def make_function_key(original: property) -> property:
    """A function's `cache_key`, of which those of its callers are made, with its file in it.

    Triton's own has the source and the line. PTX names the file too: a function that has moved to another one would be
    reported where it was. It stays a digest, of which programs make names of files and tables.
    """

    def cache_key(function: Any) -> str:  # noqa: ANN401  triton's JITCallable
        return sha256(f"{original.__get__(function)}:{function.fn.__code__.co_filename}".encode()).hexdigest()

    return property(cache_key)


def append_key(get_cache_key: Callable[..., str]) -> Callable[..., str]:
    """Triton 3.6's cache key with ours behind it (later versions ask the stage hook)."""

    def get_cache_key_of_ptx(*arguments: Any, **keywords: Any) -> str:  # noqa: ANN401  as Triton's own
        return f"{get_cache_key(*arguments, **keywords)}-{CACHE_KEY}"

    return get_cache_key_of_ptx
