"""A recorded fault as an error: who did what, and where. Those of memory are told by `check/memcheck.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triptych.core.errors import BudgetExceeded, DeadlockError, KernelFault
from triptych.gpu.check import memcheck
from triptych.gpu.check.culprit import Culprit, as_text
from triptych.gpu.lower.records import Context, FaultKind
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.workers import LaunchState, Worker
from triptych.gpu.syntax.ast import Instruction


def raise_first_fault(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> None:
    """Raises the fault of the lowest block, if there is one; blocks below it have run to their end."""
    faulted = [worker for worker in workers if worker.context.fault_kind]
    if faulted:
        raise describe(kernel, state, min(faulted, key=lambda worker: worker.context.fault_block))


def describe(kernel: Kernel, state: LaunchState, worker: Worker) -> KernelFault:
    """The error for a worker's fault."""
    context = worker.context
    by = Culprit.of(context, state.geometry)
    tell = _DESCRIPTIONS.get(context.fault_kind)
    if tell is None:
        return memcheck.fault(kernel, state, worker, by)
    name = kernel.entry.name
    instruction = _instruction_at(kernel, context.fault_address)
    kind, message, hint = tell(context, by, instruction, state.budget)
    return kind(
        f"kernel {name}: {message}",
        where=None if instruction is None else instruction.where,
        hint=hint,
        frames=() if instruction is None else instruction.frames,
        kernel=name,
        thread=None if kind is BudgetExceeded else by.thread,  # a warp's budget is no one lane's
        block=by.block,
    )


def _instruction_at(kernel: Kernel, line: int) -> Instruction | None:
    """The instruction of a PTX line, which faults without an address carry in its place."""
    bound = (i.instruction for block in kernel.analysis.bound for i in block)
    return next((i for i in bound if i.line == line), None)


Description = tuple[type[KernelFault], str, str]
"""The error's class, what happened, and what to do."""


def _budget(context: Context, by: Culprit, _: Instruction | None, budget: int) -> Description:
    return (
        BudgetExceeded,
        f"warp {context.fault_warp} of block {as_text(by.block)} ran more than {budget} loop iterations and was"
        " stopped",
        "does a loop of it ever end? TRIPTYCH_BUDGET raises the limit; a loop that waits for another thread to write"
        " something ends only where that thread has run already",
    )


def _trap(_: Context, by: Culprit, __: Instruction | None, ___: int) -> Description:
    hint = "the author or the compiler put it where execution must not come"
    return KernelFault, f"trap executed {by}", hint


def _parted_warp(_: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    opcode = "an instruction" if instruction is None else instruction.opcode
    return (
        DeadlockError,
        f"{opcode} names lanes that stand elsewhere, {by}; waiting for parted lanes is not supported",
        "let all lanes of the mask reach the same instruction together",
    )


_DESCRIPTIONS: Mapping[int, Callable[[Context, Culprit, Instruction | None, int], Description]] = {
    FaultKind.BUDGET: _budget,
    FaultKind.TRAP: _trap,
    FaultKind.PARTED_WARP: _parted_warp,
}
"""All other kinds are memcheck's."""
