"""Runs one launch, or a whole plan, and tells the open profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from triptych.core.arrays import Storage
from triptych.core.counters import Counters
from triptych.core.errors import BudgetExceeded, DeadlockError, KernelFault, MemoryFault
from triptych.core.launches import Finding, LaunchRecord, Severity
from triptych.core.plan import Launch, Program
from triptych.execution.demangle import readable
from triptych.execution.dispatch import execute
from triptych.execution.layout import Bytes
from triptych.execution.plans import Choice, PlanRun, run_plan
from triptych.execution.profile import LaunchReport, record_launch

__all__ = ["Choice", "DeviceMemory", "PlanRun", "run_launch", "run_plan"]


class DeviceMemory(Protocol):
    """Where a launch finds its arrays (`execution.memory.Memory`)."""

    def map(self) -> Mapping[Storage, Bytes]:
        """The bytes of every storage that a kernel may reach."""
        ...


def run_launch(program: Program, launch: Launch, memory: DeviceMemory) -> LaunchReport:
    """Runs one launch on the machine of its program, and notes it in every open profile, also if a fault stops it.

    Raises:
        LaunchError: where it does not fit the chip in force or the kernel.
        KernelFault: where the kernel did what a device forbids.
    """
    try:
        record = execute(program, launch, memory.map())
    except KernelFault as fault:
        record_launch(_stopped(program, launch, fault))
        raise
    return record_launch(record)


def _stopped(program: Program, launch: Launch, fault: KernelFault) -> LaunchRecord:
    """The record of a launch that a fault stopped: nothing was counted to its end, and the fault is its finding."""
    finding = Finding(_CHECKS[type(fault)], Severity.ERROR, fault.message, fault.where)
    return LaunchRecord(
        readable(launch.entry), program.machine, program.language, program.target, launch.grid, launch.block,
        launch.shared_bytes, Counters({}), (), (finding,),
    )  # fmt: skip


_CHECKS: Mapping[type[KernelFault], str] = {
    MemoryFault: "memcheck",
    BudgetExceeded: "budget",
    DeadlockError: "deadlock",
    KernelFault: "trap",
}
"""The name under which a fault of each kind is a finding."""
