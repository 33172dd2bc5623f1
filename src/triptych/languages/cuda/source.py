"""CUDA C++ text with a name that the user can open: line information and errors name it."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
from dataclasses import dataclass
from pathlib import Path

from triptych.core.errors import UsageError
from triptych.core.source import SourceLocation, home_expanded
from triptych.languages.calling import calling_frame

INLINE = "<cuda source {digest}>"
"""The name of a text that stands in no file as it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text, and where it stands: its first line is line `line` of `file`. `folder` has its headers."""

    text: str
    file: str
    line: int = 1
    folder: Path | None = None

    @property
    def placed_text(self) -> str:
        """The text with a directive in front that tells the compiler where it stands."""
        escaped = self.file.replace("\\", "\\\\").replace('"', '\\"')
        return f'#line {self.line} "{escaped}"\n{self.text}'


def read_source(source: str | os.PathLike[str]) -> Source:
    """A file's text, by its path, or a text itself: a string of one line without braces counts as a path.

    A text that is a literal of the calling Python file keeps its place there. Any other gets a name of its own, under
    which `linecache`, and so every report of this process, finds its lines.

    Raises:
        UsageError: where the file cannot be read.
    """
    if isinstance(source, str) and ("\n" in source or "{" in source or ";" in source):
        return _placed_literal(source) or _inline(source)
    if not isinstance(source, str | os.PathLike) or not str(source):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"expected CUDA C++ source or the path of a file, got {source!r}", hint="pass a string or a Path"
        )
    path = home_expanded(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"cannot read the CUDA source: {reason}",
            where=SourceLocation(str(path), 0),
            hint="pass the path of a .cu file, or the source itself",
        ) from error
    path = path.resolve()
    return Source(text, str(path), folder=path.parent)


def _inline(text: str) -> Source:
    name = INLINE.format(digest=hashlib.sha256(text.encode()).hexdigest()[:8])
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return Source(text, name, folder=Path.cwd())


def _placed_literal(text: str) -> Source | None:
    """The place of the one literal of the calling file that is this text, line for line."""
    frame = calling_frame()
    if frame is None or "\n" not in text:
        return None
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == text)
    starts = {start for node in nodes if (start := _first_line(node, text, lines)) is not None}
    if len(starts) != 1:
        return None
    folder = Path(file).resolve().parent if Path(file).is_file() else Path.cwd()
    return Source(text, os.path.abspath(file) if Path(file).is_file() else file, starts.pop(), folder)


def _first_line(node: ast.Constant, text: str, lines: list[str]) -> int | None:
    """The line of the text's first line; None where the literal's lines are not the text's (escapes, joined lines)."""
    if node.end_lineno is None:
        return None
    start = node.end_lineno - text.count("\n")
    begins_below = start == node.lineno + 1 and lines[node.lineno - 1].rstrip("\n").endswith("\\")
    return start if start == node.lineno or begins_below else None
