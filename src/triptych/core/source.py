"""Places in a user's source, and in a launch."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from pathlib import Path

Index = tuple[int, int, int]
"""A thread's place in its block, or a block's in its grid: x, y and z."""

BUILT_IN_HEADER = "__nv_nvrtc_builtin_header.h"
"""What NVRTC calls the header that it brings in itself: there is no such file."""


def home_expanded(path: str | os.PathLike[str]) -> Path:
    """The path with `~` or `~user` replaced by the home directory; it stays as it is where there is none."""
    return Path(os.path.expanduser(path))


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A line of a file; `line` counts from 1, 0 means that the line is not known."""

    file: str
    line: int

    def __str__(self) -> str:
        """`file:line`, or the file alone."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def text(self) -> str:
        """The line itself without its indentation, empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip() if self.line else ""
