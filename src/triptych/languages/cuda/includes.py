"""Which of the user's own files a source includes: a compiled kernel is stale once one of them has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S+))', re.MULTILINE)


def included_files(source: str, folder: Path | None, search: Sequence[Path]) -> dict[Path, bytes] | None:
    """The contents of the user's files that `source` may include, directly or not, whatever `#if` says.

    Args:
        source: the text.
        folder: where it lies, None for text that lies in no file.
        search: the user's folders of headers, in order.

    Returns:
        The files in the order in which they were met; None where a name is made by a macro, and cannot be known.
    """
    found: dict[Path, bytes] = {}
    waiting: list[tuple[str, Path | None]] = [(source, folder)]
    while waiting:
        text, place = waiting.pop()
        for name in _names(text):
            if name is None:
                return None
            path = _resolve(name, [*([place] if place else []), *search])
            if path is not None and path not in found:
                found[path] = path.read_bytes()
                waiting.append((found[path].decode(errors="replace"), path.parent))
    return found


def _names(text: str) -> Iterator[str | None]:
    for quoted, angled, macro in _INCLUDE.findall(text):
        yield None if macro else quoted or angled


def _resolve(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        path = folder / name
        if path.is_file():
            return path.resolve()
    return None
