"""One launch on the SIMT machine: arguments in, blocks run, counters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import Handle, Storage
from triptych.core.checks import Check, in_force, names_of
from triptych.core.errors import ArgumentError, UnsupportedFeature
from triptych.core.launches import LaunchRecord
from triptych.core.plan import Argument, Block, Launch, Program
from triptych.core.progress import reporting
from triptych.core.settings import settings
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.run.counting import count_launch
from triptych.gpu.run.faults import raise_first_fault
from triptych.gpu.run.kernel import Kernel, kernel_of
from triptych.gpu.run.module import Parameter
from triptych.gpu.run.variables import memory_of
from triptych.gpu.run.workers import Geometry, LaunchState, build_storage_table, run_workers

_CHECKS_BY_DEFAULT = in_force("gpu")


def run_launch(
    program: Program,
    launch: Launch,
    memory: Mapping[Storage, NDArray[np.uint8]],
    checks: frozenset[Check] = _CHECKS_BY_DEFAULT,
) -> LaunchRecord:
    """Runs a kernel over its grid.

    Args:
        program: PTX text.
        launch: the entry, the shape and the arguments; within the limits of the chip and the kernel, which whoever
            knows the chip sees to (`execution/limits.py`).
        memory: every storage that the kernel may reach, as bytes; used in place.
        checks: those that look at it; the record names them.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
        UnsupportedFeature: the launch asks for clusters.
        KernelFault: the kernel did what a device forbids; it was stopped there.
        KeyboardInterrupt: the user stopped it; nothing of it runs any more.
    """
    if launch.cluster != (1, 1, 1):
        raise UnsupportedFeature(f"kernel {launch.entry}: clusters are not supported")
    warps_in_rows = launch.block[0] % WARP_SIZE == 0 or launch.block[1:] == (1, 1)
    kernel = kernel_of(program.text, launch.entry, warps_in_rows=warps_in_rows)
    geometry = Geometry(launch.grid, launch.block, kernel.facts.layout.shared_bytes + launch.shared_bytes)
    parameters = pack_parameters(kernel, launch.arguments)
    variables = memory_of(kernel)
    table = build_storage_table({**memory, **variables.memory}, parameters)
    now = settings()
    handles = [(a.storage.name, index) for index, a in enumerate(launch.arguments) if isinstance(a, Handle)]
    state = LaunchState(geometry, table, parameters, variables.addresses, now.budget, dict(reversed(handles)))
    with reporting(launch.entry) as report:
        workers = run_workers(kernel, state, now.workers, report)
    raise_first_fault(kernel, state, workers)
    counters, lines = count_launch(kernel.facts.counting, workers, table)
    return LaunchRecord(
        launch.entry, "gpu", program.language, program.target, launch.grid, launch.block,
        geometry.shared_bytes, counters, lines, checks=names_of(checks),
    )  # fmt: skip


def pack_parameters(kernel: Kernel, arguments: Sequence[Argument]) -> NDArray[np.uint8]:
    """The kernel's parameter block.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
    """
    parameters = kernel.entry.parameters
    if len(arguments) != len(parameters):
        raise ArgumentError(f"kernel {kernel.entry.name} takes {len(parameters)} arguments, not {len(arguments)}")
    layout = kernel.facts.layout
    block = np.zeros(max(layout.parameter_bytes, 8), np.uint8)
    for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        data = _bytes_of(argument)
        if len(data) != parameter.size:
            raise _wrong_size(kernel, index, parameter, len(data))
        offset = layout.parameters[parameter.name]
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
