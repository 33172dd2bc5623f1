"""A whole launch: cluster by cluster, block by block, warp by warp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice, product
from math import prod

import numpy as np

from triptych.core.errors import BudgetExceeded
from triptych.core.handles import Storage
from triptych.core.output import write_output
from triptych.core.plan import Launch, Program
from triptych.core.settings import settings
from triptych.gpu.hardware import (
    GRID_WORKSPACE,
    GRID_WORKSPACE_BYTES,
    POISON_BYTE,
    RESERVED_SHARED_BYTES,
    RESERVED_SHARED_END,
)
from triptych.gpu.oracle.barriers import Barriers
from triptych.gpu.oracle.cluster import Block, Cluster, ClusterBarrier, ClusterMemory
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
    kernel = read_kernel(program.text, launch.entry, settings().tensor_numerics)
    reserved = any(i.reaches_reserved for block in kernel.bound for i in block)
    layout = lay_out_variables(kernel.module, kernel.function, RESERVED_SHARED_BYTES if reserved else 0)
    parameters = pack_arguments(kernel.function, layout, launch.arguments)
    workspace = {_WORKSPACE: np.zeros(_WORKSPACE.size, np.uint8)} if launch.cooperative else {}
    device = Device({**memory, **layout.memory, **workspace})
    counts = Counts(kernel.standers)
    shape = _cluster_of(kernel, launch)
    nx, ny, nz = (extent // part for extent, part in zip(launch.grid, shape, strict=True))
    with np.errstate(all="ignore"):
        axes = [range(extent)[:: -1 if settings().block_order == "descending" else 1] for extent in (nz, ny, nx)]
        places = ((x, y, z) for z, y, x in product(*axes))
        start = partial(_start_cluster, kernel, launch, layout, parameters, device, counts)
        try:
            _run_clusters(map(start, enumerate(places)))
        finally:
            write_output(device.text)
    return counts.tell()


def _undefined_byte() -> int:
    byte = settings().undefined_byte
    return POISON_BYTE if byte is None else byte


def _run_clusters(waiting: Iterator[Cluster]) -> None:
    """Cluster after cluster (of one block, where the launch has none); where all held only wait, as many more are."""
    held: list[Cluster] = []
    wanted, idle = 1, 0
    while True:
        held += islice(waiting, wanted - len(held))
        if not held:
            return
        done = [cluster for cluster in held if cluster.run()]
        idle = 0 if done else idle + 1
        held = [cluster for cluster in held if cluster not in done]
        wanted += 0 if done else len(held)
        if idle * PATIENCE > settings().budget:
            raise BudgetExceeded("all blocks wait for each other")


def _start_cluster(
    kernel: Kernel,
    launch: Launch,
    layout: VariableLayout,
    parameters: Bytes,
    device: Device,
    counts: Counts,
    numbered: tuple[int, tuple[int, int, int]],
) -> Cluster:
    """The cluster of that number and that place among the grid's clusters."""
    shape = _cluster_of(kernel, launch)
    size = layout.dynamic_start + launch.shared_bytes if launch.shared_bytes else layout.shared_bytes
    cluster = Cluster([], ClusterBarrier(), [])
    number, first = numbered
    for rank, (z, y, x) in enumerate(product(*map(range, reversed(shape)))):
        shared = np.full(size, _undefined_byte(), np.uint8)
        if layout.shared_start:
            shared[:RESERVED_SHARED_END] = 0
        cluster.shared.append(shared)
        at = (first[0] * shape[0] + x, first[1] * shape[1] + y, first[2] * shape[2] + z)
        coordinates = Coordinates(
            launch.grid, launch.block, at, 0, size - layout.shared_start, launch.shared_bytes,
            number * prod(shape) + rank, shape, _says_its_cluster(kernel, launch),
            GRID_WORKSPACE if launch.cooperative else 0,
        )  # fmt: skip
        memory = partial(WarpMemory, device.storages, parameters, shared)
        cluster.blocks.append(_start_block(kernel, layout, device, counts, cluster, rank, coordinates, memory))
    return cluster


def _says_its_cluster(kernel: Kernel, launch: Launch) -> bool:
    return "reqnctapercluster" in kernel.function.directives or launch.cluster != (1, 1, 1)


def _cluster_of(kernel: Kernel, launch: Launch) -> tuple[int, int, int]:
    x, y, z = (*kernel.function.directives.get("reqnctapercluster", launch.cluster), 1, 1)[:3]
    return x, y, z


def _start_block(
    kernel: Kernel,
    layout: VariableLayout,
    device: Device,
    counts: Counts,
    cluster: Cluster,
    rank: int,
    coordinates: Coordinates,
    memory: Callable[[Bytes, ClusterMemory, Counts], WarpMemory],
) -> Block:
    block = Block([], Barriers())
    stack = -(-settings().stack_bytes // 16) * 16 if kernel.has_stack else 0
    warps = -(-coordinates.threads // LANES)
    for index in range(warps):
        local = np.full((LANES, layout.local_bytes + stack), _undefined_byte(), np.uint8)
        machine = NumpyMachine(memory(local, ClusterMemory(rank, cluster.shared), counts), (index, warps))
        machine.stack_start = layout.local_bytes
        registers = Registers(kernel.function.registers, layout.addresses, replace(coordinates, warp=index))
        lanes = min(coordinates.threads - index * LANES, LANES)
        block.warps.append(Warp(kernel, registers, machine, counts, lanes, block.barriers, cluster.barrier, device))
    block.barriers.warps = block.warps
    return block
