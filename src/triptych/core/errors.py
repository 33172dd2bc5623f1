"""The error catalogue: every error a user can meet is a class here, and its docstring says when it is raised.

An error says what is wrong, where (file:line), what was expected and what to do. The command line prints it without
a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

from triptych.core.checks import ASSERT, BUDGET, DEADLOCK, MEMCHECK, SYNCCHECK, TRAP, Check
from triptych.core.memory_access import NO_ACCESS, MemoryAccess, TellsAccess
from triptych.core.source import Index, SourceLocation

_NEAR = 0.7
"""How alike two names must be, from 0 to 1, for one to be taken for the other misspelt: `memchek`, not `timecheck`."""
_MOST_LISTED = 24
"""Names that an error lists."""


class TriptychError(Exception):
    """Base of all errors of triptych that a user's input can cause."""

    def __init__(
        self,
        message: str,
        *,
        where: SourceLocation | None = None,
        hint: str | None = None,
        frames: tuple[SourceLocation, ...] = (),
    ) -> None:
        """`message` says what is wrong and what was expected; `hint` says what to do."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self._frames = frames

    @property
    def frames(self) -> tuple[SourceLocation, ...]:
        """The callers that the line at `where` was inlined into, innermost first."""
        return self._frames

    def __str__(self) -> str:
        """The whole error: message, place, callers and advice, each on its own line."""
        lines = [self.message]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        lines += [f"  called from {frame}" for frame in self.frames]
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
    def of(
        cls,
        kind: str,
        name: str,
        known: Iterable[str],
        where: SourceLocation | None = None,
        *,
        aliases: Iterable[str] = (),
        listed: str = "",
    ) -> UnknownName:
        """The error for `name`. Its advice: names that are near; else all `known` ones, where they are not many.

        `aliases` are taken as well, and offered where they are near; `listed` says where all of many stand, as a part
        of a sentence: `docs/reference/counters.md`.
        """
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), [*names, *aliases], n=3, cutoff=_NEAR)
        if near:
            advice = f"did you mean {' or '.join(near)}?"
        elif len(names) <= _MOST_LISTED:
            advice = f"known: {', '.join(names)}"
        else:
            advice = f"none of the {len(names)} known ones is near" + (f"; all: {listed}" if listed else "")
        return cls(f"unknown {kind} '{name}'", where=where, hint=advice)


class UnknownCounter(UnknownName, KeyError):
    """A counter that no machine counts; or, asked for by subscript, one that the launch or the line did not count."""


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


class CaptureError(TriptychError):
    """A captured program does what no plan can say: it runs on handles without data, and what it launches is noted."""


class ValueTouched(CaptureError):
    """A captured program asks for values of an array: there are none before the plan is run."""


class ArgumentError(LaunchError):
    """An argument of a kernel is missing, superfluous or of the wrong type, range or layout."""


class IntegerOverflow(ArgumentError, OverflowError):
    """An integer that no type of a kernel's language holds."""


class KernelFault(TriptychError):
    """The running kernel did what a device forbids; the launch was stopped."""

    check: ClassVar[Check] = TRAP
    """The check whose finding the fault is."""

    def __init__(
        self,
        message: str,
        *,
        where: SourceLocation | None = None,
        hint: str | None = None,
        frames: tuple[SourceLocation, ...] = (),
        kernel: str | None = None,
        thread: Index | None = None,
        block: Index | None = None,
    ) -> None:
        """The text, and beside it what the machine knows of the place; None is what it does not."""
        super().__init__(message, where=where, hint=hint, frames=frames)
        self._kernel, self._thread, self._block = kernel, thread, block

    @property
    def kernel(self) -> str | None:
        """The kernel's name, as the program's text has it."""
        return self._kernel

    @property
    def thread(self) -> Index | None:
        """`threadIdx` of the thread: x, y and z."""
        return self._thread

    @property
    def block(self) -> Index | None:
        """`blockIdx` of its block: x, y and z."""
        return self._block


class MemoryFault(TellsAccess, KernelFault):
    """An access outside every allocation, a misaligned one, or a store to what is read-only.

    Also a stack that overflows, a call through a pointer to no function, and memory freed that was not allocated; of
    these there is no access to tell.
    """

    check = MEMCHECK

    def __init__(
        self,
        message: str,
        *,
        where: SourceLocation | None = None,
        hint: str | None = None,
        frames: tuple[SourceLocation, ...] = (),
        kernel: str | None = None,
        thread: Index | None = None,
        block: Index | None = None,
        memory: MemoryAccess = NO_ACCESS,
    ) -> None:
        """The text, and beside it what the machine knows of the place and the access; None is what it does not."""
        super().__init__(message, where=where, hint=hint, frames=frames, kernel=kernel, thread=thread, block=block)
        self.memory = memory


class AssertionFailure(KernelFault):
    """An `assert` of the kernel that does not hold; the place is the assertion's."""

    check = ASSERT


class BudgetExceeded(KernelFault):
    """A kernel ran longer than its budget: most likely it loops for ever. The warp is not one `thread`.

    Also an NKI kernel whose trace grows beyond its limit, or whose Python goes on and on without an instruction.
    """

    check = BUDGET


class DeadlockError(KernelFault):
    """Threads wait for each other and none can go on."""

    check = DEADLOCK


class BarrierMisuse(KernelFault):
    """A barrier that a block does not have, or whose number of threads cannot be, or is not that of others there.

    Also an mbarrier that was not initialised, or that gets more arrivals or bytes than it takes.
    """

    check = SYNCCHECK


class DivergentWarp(KernelFault):
    """Only some threads of a warp execute an instruction that is for all 32 together (`.sync.aligned`: `mma` …)."""

    check = SYNCCHECK


class TensorMapMisuse(KernelFault):
    """A copy's tensor map is none, or does not fit the copy."""

    check = MEMCHECK


class WarpgroupMisuse(KernelFault):
    """A warpgroup is not whole where it multiplies matrices, or a matrix descriptor says what it cannot."""

    check = SYNCCHECK


class LaunchInterrupted(TriptychError):
    """The user stopped a running launch."""


class SandboxError(TriptychError):
    """A sandbox cannot be started, or not with the layers of isolation that were required."""


class NkiError(TriptychError):
    """An NKI kernel does what the language, the compiler or the hardware refuses."""


class NkiLimitError(NkiError):
    """A tile or an operand is larger than the hardware's limit, or lies where the engine cannot reach it."""


class UnknownNkiName(UnknownName, NkiError, AttributeError):
    """A name that a module of NKI, or a tensor, does not have; near names are offered."""
