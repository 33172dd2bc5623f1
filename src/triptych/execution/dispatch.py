"""One launch -> the machine that its program is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod

from triptych import gpu, neuron
from triptych.chips import GpuChip
from triptych.core.errors import KernelFault, PlanError
from triptych.core.handles import Storage
from triptych.core.launches import Observed
from triptych.core.plan import Launch, LaunchShape, Program
from triptych.core.settings import settings
from triptych.execution.host_memory import Bytes
from triptych.execution.limits import check_launch, resident_blocks_per_sm
from triptych.execution.profile import active_checks, active_chip
from triptych.execution.timing import is_only_timed

Memory = Mapping[Storage, Bytes]


def execute(program: Program, launch: Launch, memory: Memory, device: gpu.DeviceMemory) -> Observed:
    """Runs one launch on the machine of its program, within the limits and under the checks in force.

    `device` is what launches on a GPU leave there for those after them.

    Raises:
        PlanError: for a machine that there is not.
        LaunchError: where the launch does not fit the chip or the kernel.
        KernelFault: where the kernel did what a device forbids.
    """
    run = _MACHINES.get(program.machine)
    if run is None:
        raise PlanError(f"unknown machine '{program.machine}'; there are: {', '.join(_MACHINES)}")
    return run(program, launch, memory, device)


def _run_gpu(program: Program, launch: Launch, memory: Memory, device: gpu.DeviceMemory) -> Observed:
    chip = active_chip("gpu")
    assert isinstance(chip, GpuChip)
    resident = _resident_blocks(program.text, launch.entry, launch.shape, chip, program.target)
    checks = active_checks("gpu")
    most = settings().benchmark_blocks if is_only_timed() else None
    try:
        return gpu.run_launch(
            program, launch, memory, checks, device=device, resident_blocks=resident, most_blocks=most
        )
    except KernelFault as fault:
        if most is not None and most < prod(launch.grid):
            sampled = f"only {most} blocks were to run, to be timed (TRIPTYCH_BENCHMARK_BLOCKS): do they need others?"
            fault.hint = sampled if fault.hint is None else f"{fault.hint}; {sampled}"
        raise


@lru_cache(maxsize=256)
def _resident_blocks(text: str, name: str, shape: LaunchShape, chip: GpuChip, target: str) -> int | None:
    """How many blocks of a launch that fits the chip this holds at once; None where it has no such entry.

    Raises:
        LaunchError: where the launch does not fit the chip or the kernel.
    """
    entry = gpu.load(text).entries.get(name)
    if entry is None:
        return None
    check_launch(shape, entry, chip, target)
    return resident_blocks_per_sm(shape, entry, chip) * chip.sm_count


def _run_neuron(program: Program, launch: Launch, memory: Memory, _: gpu.DeviceMemory) -> Observed:
    return neuron.run_launch(program, launch, memory, active_checks("neuron"))


_MACHINES: Mapping[str, Callable[[Program, Launch, Memory, gpu.DeviceMemory], Observed]] = {
    "gpu": _run_gpu,
    "neuron": _run_neuron,
}
