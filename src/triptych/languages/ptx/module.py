"""A PTX text and its kernels by name."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NoReturn

from triptych import gpu
from triptych.core.errors import PtxSyntaxError, TriptychError, UnknownName, UsageError
from triptych.core.gpu_targets import target_of_ptx
from triptych.core.languages import PTX
from triptych.core.plan import Program
from triptych.core.source import SourceLocation, home_expanded
from triptych.execution.demangle import readable
from triptych.languages.calling import calling_location
from triptych.languages.launcher import Kernel, no_attribute
from triptych.languages.variables import ModuleVariables


def read_text(source: str | os.PathLike[str]) -> tuple[str, str | None]:
    """The text and, where it stands in a file, that file's path.

    A string is a text where it cannot be a file: it has several lines, begins as PTX does or is empty, or has no suffix
    and is the name of no file. So what is left of a text that was cut short is still a text.

    Raises:
        UsageError: for a file that cannot be read.
    """
    if isinstance(source, str) and _is_text(source):
        return source, None
    path = home_expanded(source)
    try:
        return path.read_text(encoding="utf-8"), str(path.resolve())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        where = SourceLocation(str(path), 0)
        hint = "pass the path of a .ptx file, or the text itself"
        raise UsageError(f"cannot read the PTX: {reason}", where=where, hint=hint) from error


def _is_text(source: str) -> bool:
    if not source.strip() or any(sign in source for sign in "\n{;"):
        return True
    path = home_expanded(source)
    with suppress(OSError, ValueError):  # a name too long, or with a NUL, is none
        if path.is_file():
            return False
        begins_as_ptx = source.startswith(("//", "/*")) or (source.startswith(".") and "/" not in source)
        return begins_as_ptx or not (path.suffix or path.exists())
    return True


class PtxModule:
    """The kernels of one PTX text."""

    def __init__(self, text: str, file: str | None = None) -> None:
        """Reads the text at once; `file` is where it stands, for errors.

        Raises:
            PtxSyntaxError: where the text does not follow the manual's grammar, at its line.
        """
        try:
            loaded = gpu.load(text)
            loaded.require_valid()
            self._entries = loaded.entries
        except TriptychError as error:
            if file is not None and error.where is not None and error.where.file.startswith("<"):
                error.where = SourceLocation(file, error.where.line)
            raise
        target = target_of_ptx(text)
        if target is None:
            raise PtxSyntaxError("a module needs a .target sm_…", where=SourceLocation(file or "<ptx>", 1))
        self._program = Program.of(PTX, text, target)
        self._variables = ModuleVariables(self._program)
        self._file = file

    @property
    def ptx(self) -> str:
        """The text."""
        return self._program.text

    @property
    def target(self) -> str:
        """What the text says that it is for (`sm_80`)."""
        return self._program.target

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels, by their names in the PTX."""
        return tuple(self._entries)

    @property
    def variables(self) -> ModuleVariables:
        """The variables in constant and global memory: `variables["table"].copy_from(array)` before a launch.

        They keep what is stored in them from launch to launch; modules of the same text share them.
        """
        return self._variables

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of a name: that of the PTX, or the readable one where only one kernel has it.

        Raises:
            UnknownName: where no kernel has that name, or several have.
        """
        if name in self._entries:
            return Kernel(self._program, self._entries[name])
        found = [entry for entry in self._entries if readable(entry) == name]
        if len(found) != 1:
            raise UnknownName.of("kernel", name, self._entries or ["none"], calling_location())
        return Kernel(self._program, self._entries[found[0]])

    def __getattr__(self, name: str) -> NoReturn:
        """Always an error: kernels are taken by subscript."""
        raise no_attribute(type(self).__name__, name, self.names if "_entries" in vars(self) else ())

    def __repr__(self) -> str:
        """The file, if any, and the kernels."""
        return f"<PTX module {self._file or ''}: {', '.join(self.names)}>"
