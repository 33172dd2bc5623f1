"""One launch on the SIMT machine: arguments in, blocks run, counters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import ASYNCCHECK, VIEWCHECK, Check, in_force
from triptych.core.errors import ArgumentError, LaunchError
from triptych.core.handles import Storage
from triptych.core.launches import Observed
from triptych.core.output import write_output
from triptych.core.plan import Argument, Launch, Program, bytes_of
from triptych.core.progress import reporting
from triptych.core.settings import settings
from triptych.gpu.check import find_all
from triptych.gpu.check.faults import raise_first_fault
from triptych.gpu.check.viewcheck import NO_VIEWS, passed_views
from triptych.gpu.hardware import GRID_WORKSPACE, LOCAL_BYTES, WARP_SIZE
from triptych.gpu.run.counting import count_launch
from triptych.gpu.run.geometry import Geometry
from triptych.gpu.run.kernel import Kernel, kernel_of
from triptych.gpu.run.module import Parameter
from triptych.gpu.run.passed import passed_arrays, passed_nulls
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.slots import HELD_BYTES, slot_bytes
from triptych.gpu.run.storage_table import build_storage_table
from triptych.gpu.run.variables import DeviceMemory, grid_workspace
from triptych.gpu.run.worker import LaunchState
from triptych.gpu.run.workers import run_workers

_CHECKS_BY_DEFAULT = in_force("gpu")


def run_launch(
    program: Program,
    launch: Launch,
    memory: Mapping[Storage, NDArray[np.uint8]],
    checks: frozenset[Check] = _CHECKS_BY_DEFAULT,
    *,
    device: DeviceMemory | None = None,
    resident_blocks: int | None = None,
) -> Observed:
    """Runs a kernel over its grid.

    Args:
        program: PTX text.
        launch: the entry, the shape and the arguments; within the limits of the chip and the kernel, which whoever
            knows the chip sees to (`execution/limits.py`).
        memory: every storage that the kernel may reach, as bytes; used in place.
        checks: those that look at it.
        device: what earlier launches have left on the device; None: nothing has run there yet.
        resident_blocks: how many blocks the chip holds at once: no more of them wait for others at a time. None: as
            many as memory permits.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
        LaunchError: a cooperative launch needs more memory to hold all its blocks than there is for that.
        KernelFault: the kernel did what a device forbids; it was stopped there.
        KeyboardInterrupt: the user stopped it; nothing of it runs any more.
    """
    warps_in_rows = launch.block[0] % WARP_SIZE == 0 or launch.block[1:] == (1, 1)
    now = settings()
    numerics, watches = now.tensor_numerics, ASYNCCHECK in checks
    kernel = kernel_of(program.text, launch.entry, warps_in_rows=warps_in_rows, numerics=numerics, watches=watches)
    geometry = _geometry(kernel, launch)
    parameters = pack_parameters(kernel, launch.arguments)
    device = device or DeviceMemory()
    variables = device.variables_of(kernel.gpu_module)
    workspace = grid_workspace() if launch.cooperative else {}
    heap = device.heap(now.heap_bytes) if kernel.facts.uses_heap else device.heap_in_use()
    views = passed_views(launch) if VIEWCHECK in checks else NO_VIEWS
    table = build_storage_table({**memory, **variables.memory, **workspace}, parameters, views, heap)
    state = LaunchState(
        geometry=geometry,
        table=table,
        parameters=parameters,
        symbols=variables.addresses,
        budget=now.budget,
        most_held=_most_held(kernel, geometry, resident_blocks, cooperative=launch.cooperative),
        argument_of=passed_arrays(launch),
        null_arguments=passed_nulls(launch),
        grid_workspace=GRID_WORKSPACE if launch.cooperative else 0,
        heap=heap,
        printed=PrintedText(now.printf_bytes),
    )
    try:
        with reporting(launch.entry) as report:
            workers = run_workers(kernel, state, 1 if kernel.facts.order_matters else now.workers, report)
    finally:
        write_output(state.printed.collect(state.last_block))
    raise_first_fault(kernel, state, workers)
    counters, lines = count_launch(kernel.facts.counting, workers, table)
    return Observed(counters, lines, find_all(checks, kernel, state, workers))


def _geometry(kernel: Kernel, launch: Launch) -> Geometry:
    """The launch's shape, with the memory of a block and of a thread.

    Raises:
        LaunchError: the stack of a thread would be larger than its local memory may be.
    """
    cluster = kernel.entry.required_cluster or launch.cluster
    layout = kernel.facts.layout
    local_bytes = layout.local_bytes
    if layout.has_recursion:
        local_bytes += -(-settings().stack_bytes // 16) * 16
    if local_bytes > LOCAL_BYTES:
        raise LaunchError(
            f"kernel {launch.entry} would need {local_bytes} bytes of local memory a thread with its stack; the limit"
            f" is {LOCAL_BYTES}",
            hint="set TRIPTYCH_STACK_BYTES to less",
        )
    return Geometry(
        launch.grid, launch.block, layout.total_shared_bytes(launch.shared_bytes), local_bytes,
        cluster, explicit_cluster=kernel.entry.required_cluster is not None or cluster != (1, 1, 1),
    )  # fmt: skip


def _most_held(kernel: Kernel, geometry: Geometry, resident: int | None, *, cooperative: bool) -> int:
    """How many blocks of a launch may be held at once.

    Raises:
        LaunchError: a cooperative launch needs more memory to hold all its blocks than there is for that.
    """
    room = max(1, HELD_BYTES // slot_bytes(kernel, geometry))
    if cooperative and geometry.blocks > room:
        raise LaunchError(
            f"kernel {kernel.entry.name}: the machine has memory to hold {room} of its blocks at once; a cooperative"
            f" launch needs all {geometry.blocks}",
            hint="launch fewer blocks and loop over the work",
        )
    most, whole = min(room, geometry.blocks if resident is None else resident), geometry.cluster_size
    return min(geometry.blocks, max(1, most // whole) * whole)


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
        data = bytes_of(argument)
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
