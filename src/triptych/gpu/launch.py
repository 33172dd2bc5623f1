"""One launch on the SIMT machine: arguments in, blocks run, counters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import ASYNCCHECK, VIEWCHECK, Check, in_force
from triptych.core.errors import ArgumentError
from triptych.core.handles import Storage
from triptych.core.identity import kept_by_identity
from triptych.core.launches import Observed
from triptych.core.output import write_output
from triptych.core.plan import Launch, Program, bytes_of
from triptych.core.progress import reporting
from triptych.core.settings import Settings, settings
from triptych.core.touched import is_noting_touched
from triptych.gpu.check import find_all
from triptych.gpu.check.faults import raise_first_fault
from triptych.gpu.check.viewcheck import NO_VIEWS, passed_views
from triptych.gpu.hardware import GRID_WORKSPACE, POISON_BYTE, WARP_SIZE
from triptych.gpu.run.counting import account_of, sample_of
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.kernel import Kernel, kernel_of
from triptych.gpu.run.printed_text import PrintedText
from triptych.gpu.run.stage import Stage, stage_of
from triptych.gpu.run.storage_table import Region, StorageTable
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
    most_blocks: int | None = None,
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
        most_blocks: how many are run of a grid of more, at equal distances, where the launch is only to be timed: what
            is counted is theirs. None: all, as of a cooperative launch in any case.

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
    descending = now.block_order == "descending"
    most = None if launch.cooperative else most_blocks
    stage = stage_of(kernel, launch.shape, now.stack_bytes, resident_blocks, descending=descending, most_blocks=most)
    device = device or DeviceMemory()
    variables = device.variables_of(kernel.gpu_module)
    workspace = grid_workspace() if launch.cooperative else {}
    heap = device.heap(now.heap_bytes) if kernel.facts.uses_heap else device.heap_in_use()
    regions = Region.of(memory), variables.region, *((Region.of(workspace),) if workspace else ())
    table = stage.table(regions, heap, passed_views(launch) if VIEWCHECK in checks else NO_VIEWS)
    _pack_parameters(stage, launch, table.parameters)
    state = _begin(stage, launch, table, variables.place, heap, now)
    try:
        with reporting(launch.entry) as report:
            alone = kernel.facts.order_matters or now.launch_budget is not None
            workers = run_workers(stage, state, 1 if alone else now.workers, report)
    finally:
        write_output(state.printed.collect(state.last_block))
    raise_first_fault(kernel, state, workers)
    account, findings = account_of(kernel.facts.counting, workers, table), find_all(checks, kernel, state, workers)
    touched = table.touched if is_noting_touched() else ()
    seen = Observed(account, findings, touched=touched, sample=sample_of(stage.geometry, table))
    stage.keep(state, workers)
    return seen


def _begin(
    stage: Stage, launch: Launch, table: StorageTable, symbols: int, heap: DeviceHeap | None, now: Settings
) -> LaunchState:
    """What the workers of a launch share, before any of them begins."""
    return LaunchState(
        launch=launch,
        geometry=stage.geometry,
        table=table,
        symbols=symbols,
        budget=now.budget,
        launch_budget=now.launch_budget,
        undefined_byte=POISON_BYTE if now.undefined_byte is None else now.undefined_byte,
        most_held=stage.most_held,
        grid_workspace=GRID_WORKSPACE if launch.cooperative else 0,
        heap=heap,
        printed=PrintedText(now.printf_bytes),
    )


def _pack_parameters(stage: Stage, launch: Launch, block: bytearray) -> None:
    """Writes the kernel's parameter block.

    Raises:
        ArgumentError: the number or the size of the arguments does not fit.
    """
    sizes, data = _packed(launch)
    if sizes != stage.sizes:
        raise _wrong_size(stage.kernel, data)
    stage.packing.pack_into(block, 0, *data)


@kept_by_identity(64)
def _packed(launch: Launch) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
    """The bytes of each argument, behind how many they are."""
    data = tuple(map(bytes_of, launch.arguments))
    return tuple(map(len, data)), data


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
