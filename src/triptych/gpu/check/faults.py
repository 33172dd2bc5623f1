"""A recorded fault as an error: who did what, and where. Those of memory are told by `memcheck.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triptych.core.errors import (
    AssertionFailure,
    BarrierMisuse,
    BudgetExceeded,
    DeadlockError,
    DivergentWarp,
    KernelFault,
)
from triptych.gpu.check import mbarriers, memcheck, tensor_maps, warpgroups
from triptych.gpu.check.culprit import Culprit, as_text
from triptych.gpu.hardware import BARRIERS, WARP_SIZE
from triptych.gpu.lower.records import Context, FaultKind
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.standstill import describe_standstill
from triptych.gpu.run.worker import LaunchState, Worker
from triptych.gpu.syntax.ast import Instruction, line_of


def raise_first_fault(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> None:
    """Raises the fault of the lowest block, if there is one; blocks below it have run to their end."""
    faulted = [worker for worker in workers if worker.context.fault_kind]
    if faulted:
        raise describe(kernel, state, min(faulted, key=lambda worker: worker.context.fault_block))


def describe(kernel: Kernel, state: LaunchState, worker: Worker) -> KernelFault:
    """The error for a worker's fault."""
    tell = TELLERS[FaultKind(worker.context.fault_kind)]
    return tell(kernel, state, worker, Culprit.of(worker.context, state.geometry))


def _standstill(kernel: Kernel, state: LaunchState, worker: Worker, by: Culprit) -> KernelFault:
    """The error of threads that wait for each other: at barriers that nobody completes, or in loops."""
    deadlock = worker.context.fault_kind == FaultKind.DEADLOCK
    blocks = state.geometry.cluster_of(worker.context.fault_block)
    found = describe_standstill(kernel, state, worker, only=blocks if deadlock else None)
    if deadlock:
        whose = "block" if len(blocks) == 1 else "the cluster of block"
        first = as_text(state.geometry.block_index(blocks[0]))
        what = f"threads of {whose} {first} wait for each other and none can go on"
        hint = "let all threads that a barrier or a mask names reach it; exited ones are not waited for"
        if worker.standing:
            hint = "does each mbarrier get the arrivals and bytes of its phase, and is that what is waited for?"
    else:
        what = f"all threads wait for others, for more than {state.budget} loop iterations"
        hint = "does any thread write what they wait for? TRIPTYCH_BUDGET raises the limit"
    kind = DeadlockError if deadlock else BudgetExceeded
    return kind(
        f"kernel {kernel.entry.name}: {what}:\n{found.places}",
        where=None if found.first is None else found.first.where,
        hint=hint,
        frames=() if found.first is None else found.first.frames,
        kernel=kernel.entry.name,
        block=by.block,
    )


def _host_call(kernel: Kernel, _: LaunchState, worker: Worker, by: Culprit) -> KernelFault:
    """The error of a function that the host provides; an assertion says itself where it is."""
    assert worker.host is not None
    fault = worker.host.fault
    assert fault is not None
    instruction = kernel.instruction_at(worker.context.fault_place)
    here = None if instruction is None else instruction.where
    asserted = fault.error is AssertionFailure
    return fault.error(
        fault.message if asserted else f"kernel {kernel.entry.name}: {fault.message}, {by}",
        where=fault.where or here,
        hint=fault.hint,
        frames=() if instruction is None or fault.where not in (None, here) else instruction.frames,
        kernel=kernel.entry.name,
        thread=by.thread,
        block=by.block,
    )


Teller = Callable[[Kernel, LaunchState, Worker, Culprit], KernelFault]
"""The error for a worker's fault, which a thread caused."""
Description = tuple[type[KernelFault], str, str]
"""The error's class, what happened, and what to do."""


def _at_instruction(describe: Callable[[Context, Culprit, Instruction | None, int], Description]) -> Teller:
    """Tells a fault whose place is an instruction's by what `describe` says of it."""

    def tell(kernel: Kernel, state: LaunchState, worker: Worker, by: Culprit) -> KernelFault:
        instruction = kernel.instruction_at(worker.context.fault_place)
        kind, message, hint = describe(worker.context, by, instruction, state.budget)
        return kind(
            f"kernel {kernel.entry.name}: {message}",
            where=None if instruction is None else instruction.where,
            hint=hint,
            frames=() if instruction is None else instruction.frames,
            kernel=kernel.entry.name,
            thread=None if kind is BudgetExceeded else by.thread,  # a warp's budget is no one lane's
            block=by.block,
        )

    return tell


def _budget(context: Context, by: Culprit, _: Instruction | None, budget: int) -> Description:
    return (
        BudgetExceeded,
        f"warp {context.fault_warp} of block {as_text(by.block)} ran more than {budget} loop iterations and was"
        " stopped",
        "does a loop of it ever end? TRIPTYCH_BUDGET raises the limit",
    )


def _launch_budget(kernel: Kernel, state: LaunchState, worker: Worker, by: Culprit) -> KernelFault:
    """The error of a launch whose warps ran more than they may together; its place is known where one loops long."""
    instruction = kernel.instruction_at(worker.context.fault_place)
    return BudgetExceeded(
        f"kernel {kernel.entry.name}: its warps ran more than {state.launch_budget} loop iterations together, each warp"
        f" counting as one more; the launch was stopped in block {as_text(by.block)}",
        where=None if instruction is None else instruction.where,
        hint="is the launch larger than it should be? TRIPTYCH_LAUNCH_BUDGET raises the limit",
        frames=() if instruction is None else instruction.frames,
        kernel=kernel.entry.name,
        block=by.block,
    )


def _trap(_: Context, by: Culprit, __: Instruction | None, ___: int) -> Description:
    hint = "the author or the compiler put it where execution must not come"
    return KernelFault, f"trap executed {by}", hint


def _barrier_number(context: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    message = f"{_opcode(instruction)} names barrier {context.fault_detail}, {by}"
    return BarrierMisuse, message, f"a block has the barriers 0 to {BARRIERS - 1}"


def _barrier_threads(context: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    message = f"{_opcode(instruction)} waits for {context.fault_detail} threads, {by}"
    return BarrierMisuse, message, f"the number must be a multiple of {WARP_SIZE}, and not 0"


def _barrier_mismatch(context: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    message = f"{_opcode(instruction)} waits for another number of threads than the barrier does since"
    hint = "give the same number everywhere, or use another barrier"
    return BarrierMisuse, f"{message} PTX line {line_of(context.fault_detail)}, {by}", hint


def _cluster_arrival(_: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    message = f"{_opcode(instruction)} arrives again before the thread has waited, {by}"
    return BarrierMisuse, message, "let each arrival at the cluster's barrier be followed by a wait there"


def _cluster_wait(_: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    message = f"{_opcode(instruction)} waits though the thread has not arrived, {by}"
    return BarrierMisuse, message, "let the thread arrive at the cluster's barrier before it waits there"


def _divergent_warp(context: Context, by: Culprit, instruction: Instruction | None, __: int) -> Description:
    lanes = f"{context.fault_detail:#010x}"
    message = f"{_opcode(instruction)} is for all {WARP_SIZE} threads of a warp; only lanes {lanes} execute it, {by}"
    return DivergentWarp, message, "let whole warps come to it together, none of whose threads has ended"


def _opcode(instruction: Instruction | None) -> str:
    return "a barrier" if instruction is None else f"'{instruction.opcode}', PTX line {instruction.line},"


TELLERS: Mapping[FaultKind, Teller] = {
    **dict.fromkeys(memcheck.WRONG, memcheck.fault),
    **dict.fromkeys(mbarriers.WRONG, mbarriers.fault),
    FaultKind.TENSOR_MAP: tensor_maps.fault,
    FaultKind.MATRIX_DESCRIPTOR: warpgroups.fault,
    FaultKind.BUDGET: _at_instruction(_budget),
    FaultKind.LAUNCH_BUDGET: _launch_budget,
    FaultKind.TRAP: _at_instruction(_trap),
    FaultKind.CLUSTER_ARRIVAL: _at_instruction(_cluster_arrival),
    FaultKind.CLUSTER_WAIT: _at_instruction(_cluster_wait),
    FaultKind.DIVERGENT_WARP: _at_instruction(_divergent_warp),
    FaultKind.BARRIER_NUMBER: _at_instruction(_barrier_number),
    FaultKind.BARRIER_THREADS: _at_instruction(_barrier_threads),
    FaultKind.BARRIER_MISMATCH: _at_instruction(_barrier_mismatch),
    FaultKind.DEADLOCK: _standstill,
    FaultKind.HANG: _standstill,
    FaultKind.HOST_CALL: _host_call,
}
"""What tells a fault, for every kind."""
