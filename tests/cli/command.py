"""Runs the command line in a process of its own, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

START = [sys.executable, "-c", "from triptych.cli.main import main; main()"]


def triptych(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Standard output, standard error and the exit status of `triptych ARGUMENTS`."""
    return subprocess.run(
        [*START, *arguments], capture_output=True, text=True, cwd=cwd, env=os.environ | environment, check=False
    )


def script(folder: Path, *lines: str, name: str = "script.py") -> str:
    """A script of these lines; its path."""
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def without_blank_lines(text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.strip()]
