"""The table of reasons: why a candidate did not pass. A verdict other than `passed` names a row.

`triptych explain CODE` prints a row, and docs/judge.md has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

JUDGE_ERROR = "judge_error"
"""The reason of a candidate that the judge failed on."""


class Outcome(Enum):
    """How a verdict ends; all but `passed` have reasons."""

    PASSED = "passed"
    WRONG = "wrong"
    CHEATED = "cheated"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    INVALID = "invalid"


OUTCOMES: Mapping[Outcome, str] = {
    Outcome.PASSED: "Every result is right, and the work was done by the candidate's kernels.",
    Outcome.WRONG: "A result is not what the operator says, or depends on what it must not depend on.",
    Outcome.CHEATED: "The results were not computed by the candidate's kernels, or not as the operator asks.",
    Outcome.CRASHED: "The candidate's host code or a kernel ended with an error.",
    Outcome.TIMED_OUT: "The candidate's host code or a kernel did not come to an end.",
    Outcome.INVALID: "Nothing was judged: there is no solution, or this version cannot run it, or the judge failed.",
}
"""What each outcome says."""


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A row."""

    code: str
    outcome: Outcome
    meaning: str
    """In one sentence."""
    advice: str
    """What to do."""


_WRONG = (
    ReasonRow(
        "wrong_result", Outcome.WRONG,
        "An element of an output is further from the float64 reference than the operator's error budget allows.",
        "Look at the counterexample: the smallest size that fails, the element, what was got and expected.",
    ),
    ReasonRow(
        "not_written", Outcome.WRONG,
        "An element of an output holds what its memory held before: no kernel has written it.",
        "Cover the whole output: look at the grid, at the last tile, and at masks.",
    ),
    ReasonRow(
        "low_precision", Outcome.WRONG,
        "The error exceeds the budget, and products or sums ran in a type with fewer digits than the operator's.",
        "Compute in the operator's type, or split operands into several of the narrow type (3xTF32).",
    ),
    ReasonRow(
        "order_dependent", Outcome.WRONG,
        "With the blocks of the grid in the opposite order a result is wrong.",
        "Blocks run in any order: let none rely on what another has stored, but by atomics or a later launch.",
    ),
    ReasonRow(
        "undefined_memory", Outcome.WRONG,
        "With other contents of memory that nobody has written a result is wrong.",
        "Write shared memory, local memory and scratch before they are read; fill what is added to.",
    ),
    ReasonRow(
        "unsafe", Outcome.WRONG,
        "A check found an error in a launch: a race, memory read before a copy has arrived, undefined data stored.",
        "The finding names the line; `triptych run` shows it with its callers.",
    ),
    ReasonRow(
        "shape", Outcome.WRONG,
        "What the solution gave has another number, shape, type or order in memory than the operator's outputs.",
        "Return the outputs in order, as `triptych operators NAME` lists them.",
    ),
)  # fmt: skip
_CHEATED = (
    ReasonRow(
        "library_work", Outcome.CHEATED,
        "An operation of a library was to do work: only kernels, allocations and views of memory count.",
        "Do it in a kernel of the solution.",
    ),
    ReasonRow(
        "input_changed", Outcome.CHEATED,
        "An input holds something else after the run.",
        "Write to memory of the solution's own: `tt.empty`.",
    ),
    ReasonRow(
        "output_not_stored", Outcome.CHEATED,
        "Bytes of an output were never stored by a kernel: they come from a constant, a fill, a copy or an input.",
        "Let a kernel store the whole output.",
    ),
    ReasonRow(
        "input_not_loaded", Outcome.CHEATED,
        "Bytes of an input that every solution needs were never loaded by a kernel that contributes.",
        "Compute from all of the input.",
    ),
    ReasonRow(
        "too_little_work", Outcome.CHEATED,
        "The kernels carried out fewer FLOPs than the operator needs.",
        "Compute the result from the inputs; `triptych operators NAME` has the least work.",
    ),
    ReasonRow(
        "decoy", Outcome.CHEATED,
        "The work is only enough with launches that contribute nothing: without them the outputs are the same.",
        "Remove them, and let the kernels that make the result do the work.",
    ),
    ReasonRow(
        "impossible_time", Outcome.CHEATED,
        "The estimated time is below the operator's floor: what was counted cannot have been all of the work.",
        "Keep the score's JSON and report it: either a limit of the hardware or the model is wrong.",
    ),
    ReasonRow(
        "capture_differs", Outcome.CHEATED,
        "A second call with arrays of the same shapes asks for other work than the first.",
        "Keep no results, and let no call depend on those before it.",
    ),
    ReasonRow(
        "tampered", Outcome.CHEATED,
        "Functions of Python, of a library or of triptych were replaced while the solution was captured.",
        "Leave modules that are not the solution's own as they are.",
    ),
    ReasonRow(
        "forged_reply", Outcome.CHEATED,
        "A sandboxed process answered with something that is no answer to what it was asked.",
        "Leave the judge's process and its channel alone.",
    ),
)  # fmt: skip
_CRASHED = (
    ReasonRow(
        "kernel_fault", Outcome.CRASHED,
        "A kernel did what a device forbids: an access out of bounds, a misused barrier, a failed assertion.",
        "The message names the line; `triptych explain CHECK` says what the check sees.",
    ),
    ReasonRow(
        "launch_refused", Outcome.CRASHED,
        "A launch does not fit the kernel or the chip: its grid, block, shared memory or arguments.",
        "The message names the limit; `triptych chips NAME` lists a chip's.",
    ),
    ReasonRow(
        "host_error", Outcome.CRASHED,
        "The solution's own Python raised an exception.",
        "The message has the exception and its line.",
    ),
    ReasonRow(
        "compile_error", Outcome.CRASHED,
        "A compiler refused the source of a kernel.",
        "The message is the compiler's own.",
    ),
    ReasonRow(
        "process_died", Outcome.CRASHED,
        "A sandboxed process ended before it answered: a signal, an exit, or more memory than it may have.",
        "Return from `solution`; take less memory.",
    ),
    ReasonRow(
        "out_of_memory", Outcome.CRASHED,
        "The solution or its kernels wanted more memory than there is for a candidate.",
        "Take less scratch memory.",
    ),
)  # fmt: skip
_TIMED_OUT = (
    ReasonRow(
        "kernel_hung", Outcome.TIMED_OUT,
        "A kernel ran more loop iterations than its budget, or its threads wait for each other for ever.",
        "The message names the line of the loop or the wait.",
    ),
    ReasonRow(
        "capture_timed_out", Outcome.TIMED_OUT,
        "The solution's Python, or a compiler that it called, took longer than it may.",
        "Do less on the host.",
    ),
    ReasonRow(
        "execution_timed_out", Outcome.TIMED_OUT,
        "The kernels took longer to run here than they may, on the time of the sandbox's processor.",
        "Score a smaller size, or do less work.",
    ),
)  # fmt: skip
_INVALID = (
    ReasonRow(
        "no_solution", Outcome.INVALID,
        "The source defines no function of the name that its format asks for, or one with other parameters.",
        "Define `solution(…)`, which takes the operator's inputs in order and returns its outputs.",
    ),
    ReasonRow(
        "unreadable", Outcome.INVALID,
        "The source is no text of Python.",
        "Give a Python file in UTF-8.",
    ),
    ReasonRow(
        "touched_values", Outcome.INVALID,
        "The host wanted values of an array: a scored solution is captured without data.",
        "Decide by shapes, which the host may see, or in a kernel.",
    ),
    ReasonRow(
        "unsupported", Outcome.INVALID,
        "The solution uses something valid that this version does not run.",
        "The message names it.",
    ),
    ReasonRow(
        "no_kernel", Outcome.INVALID,
        "The solution launched no kernel.",
        "Launch one.",
    ),
    ReasonRow(
        "plan_refused", Outcome.INVALID,
        "What was captured is inconsistent, or more than a plan may hold.",
        "The message says what.",
    ),
    ReasonRow(
        "other_machine", Outcome.INVALID,
        "The kernels are for a machine that none of the chips asked for has.",
        "Ask for a chip of the machine that the language is for: `triptych chips` lists them.",
    ),
    ReasonRow(
        JUDGE_ERROR, Outcome.INVALID,
        "The judge itself failed: this says nothing about the solution.",
        "Report the message. A batch that is gone on with judges the solution again.",
    ),
)  # fmt: skip

REASONS: Mapping[str, ReasonRow] = {row.code: row for row in (*_WRONG, *_CHEATED, *_CRASHED, *_TIMED_OUT, *_INVALID)}
"""The table, by code."""
TELLABLE = frozenset(REASONS) - {JUDGE_ERROR}
"""The codes that a sandboxed process may answer with: that the judge failed the judge alone says."""
