"""One launch on the SIMT machine: arguments in, blocks run, counters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import ASYNCCHECK, VIEWCHECK, Check, in_force
from triptych.core.errors import ArgumentError
from triptych.core.handles import Storage
from triptych.core.launches import Observed
from triptych.core.output import write_output
from triptych.core.plan import Argument, Launch, Program, bytes_of
from triptych.core.progress import reporting
from triptych.core.settings import settings
from triptych.gpu.check import find_all
from triptych.gpu.check.faults import raise_first_fault
from triptych.gpu.check.viewcheck import NO_VIEWS, passed_views
from triptych.gpu.hardware import GRID_WORKSPACE, WARP_SIZE
from triptych.gpu.run.counting import account_of
from triptych.gpu.run.kernel import Kernel, kernel_of
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.stage import Stage, stage_of
from triptych.gpu.run.storage_table import Region
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
    stage = stage_of(kernel, launch.shape, now.stack_bytes, resident_blocks)
    device = device or DeviceMemory()
    variables = device.variables_of(kernel.gpu_module)
    workspace = grid_workspace() if launch.cooperative else {}
    heap = device.heap(now.heap_bytes) if kernel.facts.uses_heap else device.heap_in_use()
    regions = Region.of(memory), variables.region, *((Region.of(workspace),) if workspace else ())
    table = stage.table(regions, heap, passed_views(launch) if VIEWCHECK in checks else NO_VIEWS)
    pack_parameters(stage, launch.arguments, table.parameters)
    state = LaunchState(
        launch=launch,
        geometry=stage.geometry,
        table=table,
        symbols=variables.place,
        budget=now.budget,
        most_held=stage.most_held,
        grid_workspace=GRID_WORKSPACE if workspace else 0,
        heap=heap,
        printed=PrintedText(now.printf_bytes),
    )
    try:
        with reporting(launch.entry) as report:
            workers = run_workers(stage, state, 1 if kernel.facts.order_matters else now.workers, report)
    finally:
        write_output(state.printed.collect(state.last_block))
    raise_first_fault(kernel, state, workers)
    seen = Observed(account_of(kernel.facts.counting, workers, table), find_all(checks, kernel, state, workers))
    stage.keep(state, workers)
    return seen


def pack_parameters(stage: Stage, arguments: Sequence[Argument], block: bytearray) -> None:
    """Writes the kernel's parameter block.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
    """
    data = tuple(map(bytes_of, arguments))
    if tuple(map(len, data)) != stage.sizes:
        raise _wrong_size(stage.kernel, data)
    stage.packing.pack_into(block, 0, *data)


def _wrong_size(kernel: Kernel, data: Sequence[bytes]) -> ArgumentError:
    """The error of arguments, from what each would have a device see."""
    parameters = kernel.entry.parameters
    if len(data) != len(parameters):
        return ArgumentError(f"kernel {kernel.entry.name} takes {len(parameters)} arguments, not {len(data)}")
    pairs = enumerate(zip(parameters, data, strict=True))
    index, (parameter, given) = next((i, pair) for i, pair in pairs if pair[0].size != len(pair[1]))
    return ArgumentError(
        f"kernel {kernel.entry.name}: argument {index} has {len(given)} bytes;"
        f" parameter {parameter.name} takes {parameter.size}"
    )
