"""The record of a launch that a fault stopped."""

from __future__ import annotations

from triptych.core.checks import names_of
from triptych.core.counters import Counters
from triptych.core.errors import KernelFault
from triptych.core.launches import Finding, LaunchRecord
from triptych.core.plan import Launch, Program
from triptych.execution.demangle import readable
from triptych.execution.profile import active_checks


def stopped(program: Program, launch: Launch, fault: KernelFault) -> LaunchRecord:
    """A launch of which nothing was counted to its end, and the fault is its finding."""
    return LaunchRecord(
        readable(launch.entry), program.machine, program.language, program.target, launch.grid, launch.block,
        launch.shared_bytes, Counters({}), (), (Finding.of_fault(fault),), names_of(active_checks(program.machine)),
        stopped=True,
    )  # fmt: skip
