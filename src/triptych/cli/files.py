"""Files that a command writes: refused before any work is done where they cannot be written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triptych.cli.terminal import flush_streams, writing
from triptych.core.errors import UsageError


class FileTarget:
    """Where an option's report goes: a file."""

    def __init__(self, option: str, kind: str, target: str) -> None:
        """For the option (`--html`) that writes a kind of text (`HTML`).

        Raises:
            UsageError: where the file cannot be written.
        """
        self.option = option
        self._kind = kind
        self._named = target
        self._hint = f"{option} takes a file in a folder that exists{', or -' if option == '--json' else ''}"
        # The script may change the working directory before the file is written.
        self.path = Path(target).absolute()
        self._refuse_unwritable()

    def _refuse_unwritable(self) -> None:
        """Opens a regular file, which nobody else sees; a device or a pipe is asked for its permission alone."""
        try:
            if not self.path.exists():
                self.path.open("xb").close()
                self.path.unlink()
            elif self.path.is_file() or self.path.is_dir():
                self.path.open("ab").close()
            elif not os.access(self.path, os.W_OK):
                raise self._refusal("Permission denied")
        except OSError as problem:
            raise self._refusal(problem.strerror) from problem

    def write_text(self, text: str) -> None:
        """Writes it as UTF-8; halves of surrogate pairs, from names that are no UTF-8, as JSON would escape them.

        Raises:
            UsageError: where the file can no longer be written.
        """
        try:
            self.path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as problem:
            raise self._refusal(problem.strerror) from problem

    def _refusal(self, reason: str | None) -> UsageError:
        return UsageError(f"cannot write {self._kind} to {self._named}: {reason}", hint=self._hint)


class JsonTarget:
    """Where `--json` goes: a file, or `-` for standard output."""

    def __init__(self, target: str) -> None:
        """Refuses a file that cannot be written before any work is done.

        Raises:
            UsageError: where the file cannot be written.
        """
        self.file = None if target == "-" else FileTarget("--json", "JSON", target)
        self._descriptor: int | None = None

    @property
    def is_stdout(self) -> bool:
        """Whether JSON alone goes to standard output."""
        return self.file is None

    def reserve_stdout(self) -> None:
        """From now on whatever anyone prints goes to standard error, so that standard output holds JSON alone.

        It stays so until the process ends: what a script prints when Python shuts down is not JSON either.
        """
        flush_streams()
        with writing("JSON"):
            self._descriptor = os.dup(1)
            os.dup2(2, 1)

    def write(self, value: Mapping[str, Any]) -> None:
        """Writes the document.

        Raises:
            UsageError: where the file, or standard output, cannot be written.
        """
        from triptych.report import dumps

        text = dumps(value)
        if self.file is not None:
            self.file.write_text(text)
            return
        with writing("JSON"):
            descriptor = os.dup(1) if self._descriptor is None else self._descriptor
            self._descriptor = None
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
