"""What launches of one kernel in one shape have in common, and workers that are kept from one launch to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from struct import Struct

from triptych.core.errors import LaunchError
from triptych.core.plan import POINTER_BYTES, LaunchShape
from triptych.gpu.hardware import LOCAL_BYTES
from triptych.gpu.run.geometry import Geometry, order_of
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.slots import HELD_BYTES, slot_bytes
from triptych.gpu.run.storage_table import Region, StorageTable, Views, build_storage_table
from triptych.gpu.run.worker import LaunchState, Worker, make_worker

_KEPT_BYTES = 1 << 20
"""The most memory that the blocks of a stage's idle workers have, and the maps of its table: to make them is what a
small launch takes long for."""


@dataclass(slots=True, eq=False)
class Stage:
    """A kernel, its launches' geometry, and its idle workers. Safe to use from several threads."""

    kernel: Kernel
    geometry: Geometry
    most_held: int
    """The blocks that all workers of a launch may hold at once: whole clusters."""
    most_idle: int
    """The workers that are kept."""
    sizes: tuple[int, ...]
    """Bytes of each parameter."""
    packing: Struct
    """How they lie one behind the other."""
    scheduler: Callable[[int], int] | None = None
    """What runs a worker, by its context's address; None until the kernel's code is there."""
    _idle: list[Worker] = field(default_factory=list[Worker])
    _tables: list[StorageTable] = field(default_factory=list[StorageTable])

    def table(self, regions: tuple[Region, ...], heap: DeviceHeap | None, views: Views) -> StorageTable:
        """The table of a launch that passes these views; all that its parameters held is to be written."""
        try:
            table = self._tables.pop()
        except IndexError:
            table = None
        if table is None or heap is not None or table.regions != regions:
            table = build_storage_table(regions, max(self.kernel.facts.layout.parameter_bytes, POINTER_BYTES), heap)
        table.begin(views)
        return table

    def workers(self, state: LaunchState, number: int) -> list[Worker]:
        """The workers of a launch, ready to begin."""
        found: list[Worker] = []
        for _ in range(number):
            try:
                worker = self._idle.pop()
            except IndexError:
                worker = make_worker(self.kernel, self.geometry)
            worker.begin(self.kernel, state, number)
            found.append(worker)
        return found

    def keep(self, state: LaunchState, workers: Sequence[Worker]) -> None:
        """What a launch that has ended worked with; nothing of it is to be read any more."""
        if state.heap is None and state.table.maps.nbytes <= _KEPT_BYTES and not self._tables:
            state.table.end()
            self._tables.append(state.table)
        for worker in workers:
            if worker.is_reusable and len(self._idle) < self.most_idle:
                worker.host = None
                self._idle.append(worker)


@lru_cache(maxsize=64)
def stage_of(
    kernel: Kernel,
    shape: LaunchShape,
    stack_bytes: int,
    resident_blocks: int | None,
    *,
    descending: bool = False,
    most_blocks: int | None = None,
) -> Stage:
    """The stage of launches of a kernel in a shape, with so many bytes of stack for functions that call themselves.

    `resident_blocks`: how many blocks the chip holds at once; None: as many as memory permits. `descending`: whether
    blocks are run from the last to the first. `most_blocks`: how many are run of a grid of more; None: all.

    Raises:
        LaunchError: the stack of a thread would be larger than its local memory may be; a cooperative launch needs more
            memory to hold all its blocks than there is for that.
    """
    geometry = _geometry(kernel, shape, stack_bytes)
    most_clusters = None if most_blocks is None else max(1, most_blocks // geometry.cluster_size)
    order = order_of(geometry.blocks // geometry.cluster_size, most_clusters, descending=descending)
    geometry = replace(geometry, order=order)
    block_bytes = slot_bytes(kernel, geometry)
    room = max(1, HELD_BYTES // block_bytes)
    if shape.cooperative and geometry.blocks > room:
        raise LaunchError(
            f"kernel {kernel.entry.name}: the machine has memory to hold {room} of its blocks at once; a cooperative"
            f" launch needs all {geometry.blocks}",
            hint="launch fewer blocks and loop over the work",
        )
    most, whole = min(room, geometry.blocks if resident_blocks is None else resident_blocks), geometry.cluster_size
    most_held = min(geometry.blocks, max(1, most // whole) * whole)
    sizes = tuple(parameter.size for parameter in kernel.entry.parameters)
    return Stage(kernel, geometry, most_held, _KEPT_BYTES // (block_bytes * whole), sizes, _packing(kernel))


def _packing(kernel: Kernel) -> Struct:
    """The bytes of each parameter at its offset, and gaps for its alignment."""
    form, end = "<", 0
    for parameter in kernel.entry.parameters:
        start = kernel.facts.layout.parameters[parameter.name]
        form += f"{start - end}x{parameter.size}s"
        end = start + parameter.size
    return Struct(form)


def _geometry(kernel: Kernel, shape: LaunchShape, stack_bytes: int) -> Geometry:
    """The launch's shape, with the memory of a block and of a thread."""
    cluster = kernel.entry.required_cluster or shape.cluster
    layout = kernel.facts.layout
    local_bytes = layout.local_bytes
    if layout.has_stack:
        local_bytes += -(-stack_bytes // 16) * 16
    if local_bytes > LOCAL_BYTES:
        raise LaunchError(
            f"kernel {kernel.entry.name} would need {local_bytes} bytes of local memory a thread with its stack; the"
            f" limit is {LOCAL_BYTES}",
            hint="set TRIPTYCH_STACK_BYTES to less",
        )
    return Geometry(
        shape.grid, shape.block, layout.total_shared_bytes(shape.shared_bytes), local_bytes,
        cluster, explicit_cluster=kernel.entry.required_cluster is not None or cluster != (1, 1, 1),
    )  # fmt: skip
