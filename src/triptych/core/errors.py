"""The error catalogue: every error a user can meet is a class here, and its docstring says when it is raised.

An error says what is wrong, where (file:line), what was expected and what to do. The command line prints it without
a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from triptych.core.source import SourceLocation


class TriptychError(Exception):
    """Base of all errors of triptych that a user's input can cause."""

    def __init__(self, message: str, *, where: SourceLocation | None = None, hint: str | None = None) -> None:
        """`message` says what is wrong and what was expected; `hint` says what to do."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """The whole error: message, place and advice, each on its own line."""
        lines = [self.message]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        if self.hint is not None:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class UsageError(TriptychError):
    """A command or a function was called with something it does not take."""


class SettingError(UsageError):
    """An environment variable of triptych holds a value that it does not take."""


class UnknownName(UsageError):
    """A name (chip, check, kernel …) that is not known; near names are offered."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str], where: SourceLocation | None = None) -> UnknownName:
        """The error for `name`, with the nearest of the `known` names as the advice."""
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
        return cls(f"unknown {kind} '{name}'", where=where, hint=advice)


class ChipError(TriptychError):
    """A chip file lacks a value or holds one that cannot be."""


class PlanError(TriptychError):
    """A plan is inconsistent, or its serialised form is damaged."""


class CompileError(TriptychError):
    """A language's compiler refused the source; the message is the compiler's own."""


class PtxSyntaxError(TriptychError):
    """PTX text that does not follow the manual's grammar."""


class UnsupportedInstruction(TriptychError):
    """A PTX instruction without a row in the table (`triptych instructions` lists the rows)."""


class UnsupportedFeature(TriptychError):
    """Something valid that this version does not run; the message names it."""


class LaunchError(TriptychError):
    """A launch whose grid, block, shared memory or arguments do not fit the kernel or the chip."""


class ArgumentError(LaunchError):
    """An argument of a kernel is missing, superfluous or of the wrong type, range or layout."""


class KernelFault(TriptychError):
    """The running kernel did what a device forbids; the launch was stopped."""


class MemoryFault(KernelFault):
    """An access outside every allocation, or a misaligned one."""


class BudgetExceeded(KernelFault):
    """A kernel ran longer than its budget: most likely it loops for ever."""


class DeadlockError(KernelFault):
    """Threads wait for each other and none can go on."""


class LaunchInterrupted(TriptychError):
    """The user stopped a running launch."""


class NkiError(TriptychError):
    """An NKI kernel does what the language, the compiler or the hardware refuses."""


class NkiLimitError(NkiError):
    """A tile or an operand is larger than the hardware's limit, or lies where the engine cannot reach it."""


class UnknownNkiName(UnknownName, NkiError, AttributeError):
    """A name that a module of NKI, or a tensor, does not have; near names are offered."""
