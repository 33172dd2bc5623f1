"""Runs one launch, or a whole plan, and tells the open profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from triptych.core.arrays import Storage
from triptych.core.plan import Launch, Program
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
    """Runs one launch on the machine of its program, and notes it in every open profile.

    Raises:
        LaunchError: where it does not fit the chip in force or the kernel.
        KernelFault: where the kernel did what a device forbids.
    """
    return record_launch(execute(program, launch, memory.map()))
