"""One launch on the SIMT machine: arguments in, blocks run, counters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import Handle, Storage
from triptych.core.errors import ArgumentError, LaunchError, UnsupportedFeature
from triptych.core.launches import LaunchRecord
from triptych.core.plan import Argument, Block, Launch, Program
from triptych.core.progress import reporting
from triptych.core.settings import settings
from triptych.gpu.lower.layout import WARP_SIZE
from triptych.gpu.run.counting import count_launch
from triptych.gpu.run.faults import raise_first_fault
from triptych.gpu.run.kernel import Kernel, Parameter, kernel_of
from triptych.gpu.run.variables import memory_of
from triptych.gpu.run.workers import Geometry, Shared, build_storage_table, run_workers


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """What a launch must fit; the chip's, where one is given."""

    max_threads_per_block: int = 1024
    shared_bytes_per_block_max: int = 232448
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)


def run_launch(
    program: Program, launch: Launch, memory: Mapping[Storage, NDArray[np.uint8]], limits: GpuLimits | None = None
) -> LaunchRecord:
    """Runs a kernel over its grid.

    Args:
        program: PTX text.
        launch: the entry, the shape and the arguments.
        memory: every storage that the kernel may reach, as bytes; used in place.
        limits: what the launch must fit.

    Raises:
        LaunchError: the launch does not fit the kernel or the limits.
        KernelFault: the kernel did what a device forbids; it was stopped there.
        KeyboardInterrupt: the user stopped it; nothing of it runs any more.
    """
    kernel = kernel_of(program.text, launch.entry, rows=launch.block[0] % WARP_SIZE == 0 or launch.block[1:] == (1, 1))
    geometry = Geometry(launch.grid, launch.block, kernel.facts.places.shared_bytes + launch.shared_bytes)
    _check(kernel, launch, geometry, limits or GpuLimits())
    parameters = pack_parameters(kernel, launch.arguments)
    variables = memory_of(kernel)
    table = build_storage_table({**memory, **variables.memory}, parameters)
    now = settings()
    handles = [(a.storage.name, index) for index, a in enumerate(launch.arguments) if isinstance(a, Handle)]
    shared = Shared(geometry, table, parameters, variables.addresses, now.budget, dict(reversed(handles)))
    with reporting(launch.entry) as report:
        workers = run_workers(kernel, shared, now.workers, report)
    raise_first_fault(kernel, shared, workers)
    counters, lines = count_launch(kernel.facts.counting, workers, table)
    return LaunchRecord(
        launch.entry, "gpu", program.language, program.target, launch.grid, launch.block,
        geometry.shared_bytes, counters, lines,
    )  # fmt: skip


def _check(kernel: Kernel, launch: Launch, geometry: Geometry, limits: GpuLimits) -> None:
    name, entry = launch.entry, kernel.entry
    if min(launch.grid) < 1 or min(launch.block) < 1:
        raise LaunchError(f"kernel {name}: grid {launch.grid} and block {launch.block} must be 1 or more in each axis")
    if any(extent > most for extent, most in zip(launch.grid, limits.max_grid, strict=True)):
        raise LaunchError(f"kernel {name}: grid {launch.grid} is beyond the limit of {limits.max_grid}")
    most = min(limits.max_threads_per_block, entry.max_threads or limits.max_threads_per_block)
    if geometry.threads > most or launch.block[2] > 64:
        whose = "the kernel's own limit" if most < limits.max_threads_per_block else "the limit"
        raise LaunchError(f"kernel {name}: a block of {launch.block} has {geometry.threads} threads; {whose} is {most}")
    if entry.required_block is not None and launch.block != entry.required_block:
        raise LaunchError(f"kernel {name} was compiled for blocks of {entry.required_block}, not {launch.block}")
    if geometry.shared_bytes > limits.shared_bytes_per_block_max:
        raise LaunchError(
            f"kernel {name}: a block needs {geometry.shared_bytes} bytes of shared memory;"
            f" the limit is {limits.shared_bytes_per_block_max}"
        )
    if launch.cluster != (1, 1, 1):
        raise UnsupportedFeature(f"kernel {name}: clusters are not supported")


def pack_parameters(kernel: Kernel, arguments: Sequence[Argument]) -> NDArray[np.uint8]:
    """The kernel's parameter block.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
    """
    parameters = kernel.entry.parameters
    if len(arguments) != len(parameters):
        raise ArgumentError(f"kernel {kernel.entry.name} takes {len(parameters)} arguments, not {len(arguments)}")
    places = kernel.facts.places
    block = np.zeros(max(places.parameter_bytes, 8), np.uint8)
    for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        data = _bytes_of(argument)
        if len(data) != parameter.size:
            raise _wrong_size(kernel, index, parameter, len(data))
        offset = places.parameters[parameter.name]
        block[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
    return block


def _wrong_size(kernel: Kernel, index: int, parameter: Parameter, size: int) -> ArgumentError:
    return ArgumentError(
        f"kernel {kernel.entry.name}: argument {index} has {size} bytes;"
        f" parameter {parameter.name} takes {parameter.size}"
    )


def _bytes_of(argument: Argument) -> bytes:
    match argument:
        case Handle():
            return argument.data_ptr().to_bytes(8, "little")
        case Block(data):
            return data
        case _:
            return np.array(argument.value).astype(argument.dtype.numpy).tobytes()
