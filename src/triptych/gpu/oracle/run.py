"""A whole launch: block by block, warp by warp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from triptych.core.arrays import Storage
from triptych.core.plan import Launch, Program
from triptych.core.settings import settings
from triptych.gpu.hardware import POISON_BYTE
from triptych.gpu.oracle.counting import Counts
from triptych.gpu.oracle.machine import NumpyMachine
from triptych.gpu.oracle.memory import Bytes, WarpMemory
from triptych.gpu.oracle.operands import Coordinates, Registers
from triptych.gpu.oracle.program import Kernel, read_kernel
from triptych.gpu.oracle.values import LANES
from triptych.gpu.oracle.variable_layout import VariableLayout, lay_out_variables, pack_arguments
from triptych.gpu.oracle.warp import Warp

Tally = Mapping[str, int]
"""Counters by the names that a launch's record gives them."""


def run_launch_slowly(program: Program, launch: Launch, memory: Mapping[Storage, Bytes]) -> Tally:
    """Runs a kernel over its grid, on arrays used in place, and counts what it did.

    Module variables start at their initial values in every launch.

    Raises:
        KernelFault: the kernel did what a device forbids.
        UnsupportedInstruction: an instruction has no row in the table.
        UnsupportedFeature: the kernel asks for something else that is not supported.
    """
    kernel = read_kernel(program.text, launch.entry)
    layout = lay_out_variables(kernel.module, kernel.function)
    parameters = pack_arguments(kernel.function, layout, launch.arguments)
    storages = {**memory, **layout.memory}
    counts = Counts()
    nx, ny, nz = launch.grid
    with np.errstate(all="ignore"):
        for z, y, x in product(range(nz), range(ny), range(nx)):
            warps = _start_block(kernel, launch, layout, parameters, storages, counts, (x, y, z))
            while warps:
                warps = [warp for warp in warps if next(warp, _DONE) is not _DONE]
    return counts.totals()


_DONE = object()


def _start_block(
    kernel: Kernel,
    launch: Launch,
    layout: VariableLayout,
    parameters: Bytes,
    storages: Mapping[Storage, Bytes],
    counts: Counts,
    block_index: tuple[int, int, int],
) -> list[Iterator[None]]:
    shared = np.full(layout.shared_bytes + launch.shared_bytes, POISON_BYTE, np.uint8)
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    warps: list[Iterator[None]] = []
    for index in range(-(-threads // LANES)):
        local = np.full((LANES, layout.local_bytes), POISON_BYTE, np.uint8)
        memory = WarpMemory(storages, parameters, shared, local, counts)
        coordinates = Coordinates(launch.grid, launch.block, block_index, index)
        registers = Registers(kernel.function.registers, layout.addresses, coordinates)
        lanes = min(threads - index * LANES, LANES)
        warps.append(Warp(kernel, registers, NumpyMachine(memory), counts, lanes, settings().budget).run())
    return warps
