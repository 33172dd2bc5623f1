"""A whole launch: block by block, warp by warp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

import numpy as np

from triptych.core.errors import BudgetExceeded, DeadlockError
from triptych.core.handles import Storage
from triptych.core.output import write_output
from triptych.core.plan import Launch, Program
from triptych.core.settings import settings
from triptych.gpu.hardware import GRID_WORKSPACE, GRID_WORKSPACE_BYTES, POISON_BYTE
from triptych.gpu.oracle.barriers import Barriers, State
from triptych.gpu.oracle.counting import Counts, Tally
from triptych.gpu.oracle.host import Device
from triptych.gpu.oracle.machine import NumpyMachine
from triptych.gpu.oracle.memory import Bytes, WarpMemory
from triptych.gpu.oracle.operands import Coordinates, Registers
from triptych.gpu.oracle.program import Kernel, read_kernel
from triptych.gpu.oracle.values import LANES
from triptych.gpu.oracle.variable_layout import VariableLayout, lay_out_variables, pack_arguments
from triptych.gpu.oracle.warp import PATIENCE, Warp

_WORKSPACE = Storage("grid workspace", GRID_WORKSPACE, GRID_WORKSPACE_BYTES, writable=True)


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
    workspace = {_WORKSPACE: np.zeros(_WORKSPACE.size, np.uint8)} if launch.cooperative else {}
    device = Device({**memory, **layout.memory, **workspace})
    counts = Counts()
    nx, ny, nz = launch.grid
    with np.errstate(all="ignore"):
        places = ((x, y, z) for z, y, x in product(range(nz), range(ny), range(nx)))
        start = partial(_start_block, kernel, launch, layout, parameters, device, counts)
        try:
            _run_blocks(map(start, places))
        finally:
            write_output(device.text)
    return counts.tell()


def _run_blocks(waiting: Iterator[Block]) -> None:
    """Block after block; where all that are held only wait, as many more are."""
    held: list[Block] = []
    wanted, idle = 1, 0
    while True:
        held += islice(waiting, wanted - len(held))
        if not held:
            return
        done = [block for block in held if block.run()]
        idle = 0 if done else idle + 1
        held = [block for block in held if block not in done]
        wanted += 0 if done else len(held)
        if idle * PATIENCE > settings().budget:
            raise BudgetExceeded("all blocks wait for each other")


@dataclass(eq=False, slots=True)
class Block:
    """A block that has started."""

    warps: list[Warp]
    barriers: Barriers

    def run(self) -> bool:
        """Runs until all its warps have ended, which it gives, or nothing but waiting is left."""
        while True:
            for warp in self.warps:
                if warp.state is State.READY:
                    warp.state = warp.run()
            states = {warp.state for warp in self.warps}
            if states == {State.DONE}:
                return True
            if State.WAITING in states and self.barriers.settle():
                continue
            if State.READY not in {warp.state for warp in self.warps}:
                raise DeadlockError("threads of a block wait at barriers for each other")
            return False


def _start_block(
    kernel: Kernel,
    launch: Launch,
    layout: VariableLayout,
    parameters: Bytes,
    device: Device,
    counts: Counts,
    block_index: tuple[int, int, int],
) -> Block:
    size = layout.dynamic_start + launch.shared_bytes if launch.shared_bytes else layout.shared_bytes
    shared = np.full(size, POISON_BYTE, np.uint8)
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    warps: list[Warp] = []
    barriers = Barriers()
    for index in range(-(-threads // LANES)):
        stack = -(-settings().stack_bytes // 16) * 16 if kernel.has_recursion else 0
        local = np.full((LANES, layout.local_bytes + stack), POISON_BYTE, np.uint8)
        memory = WarpMemory(device.storages, parameters, shared, local, counts)
        coordinates = Coordinates(
            launch.grid, launch.block, block_index, index, shared.size, launch.shared_bytes,
            GRID_WORKSPACE if launch.cooperative else 0,
        )  # fmt: skip
        registers = Registers(kernel.function.registers, layout.addresses, coordinates)
        lanes = min(threads - index * LANES, LANES)
        warps.append(Warp(kernel, registers, NumpyMachine(memory), counts, lanes, barriers, device))
    barriers.warps = warps
    return Block(warps, barriers)
