"""A recorded fault as an error: who did what, where, and what lies nearest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triptych.core.arrays import Storage
from triptych.core.errors import BudgetExceeded, DeadlockError, KernelFault, MemoryFault
from triptych.core.source import SourceLocation
from triptych.gpu.isa.spaces import PARAM_WINDOW
from triptych.gpu.lower.analysis import MemorySite
from triptych.gpu.lower.layout import WARP_SIZE, Context, FaultKind, Site
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.workers import Geometry, Shared, Worker
from triptych.gpu.syntax.ast import Instruction

_VERBS = {"load": "read", "store": "write", "atomic": "atomic"}


def raise_first_fault(kernel: Kernel, shared: Shared, workers: Sequence[Worker]) -> None:
    """Raises the fault of the lowest block, if there is one; blocks below it have run to their end."""
    faulted = [worker for worker in workers if worker.context.fault_kind]
    if faulted:
        raise describe(kernel, shared, min(faulted, key=lambda worker: worker.context.fault_block))


def describe(kernel: Kernel, shared: Shared, worker: Worker) -> KernelFault:
    """The error for a worker's fault."""
    context = worker.context
    return _DESCRIPTIONS.get(context.fault_kind, _memory_fault)(kernel, shared, worker)


def _place(context: Context, geometry: Geometry) -> str:
    thread = context.fault_warp * WARP_SIZE + context.fault_lane
    x, y, _ = geometry.block
    block = context.fault_block
    nx, ny, _ = geometry.grid
    thread_index = (thread % x, thread // x % y, thread // (x * y))
    block_index = (block % nx, block // nx % ny, block // (nx * ny))
    return f"by thread {_tuple(thread_index)} in block {_tuple(block_index)}"


def _tuple(values: tuple[int, int, int]) -> str:
    return f"({values[0]},{values[1]},{values[2]})"


def _instruction_at(kernel: Kernel, line: int) -> Instruction | None:
    """The instruction of a PTX line, which faults without an address carry in its place."""
    bound = (i.instruction for block in kernel.analysis.bound for i in block)
    return next((i for i in bound if i.line == line), None)


def _where(kernel: Kernel, worker: Worker) -> SourceLocation | None:
    instruction = _instruction_at(kernel, worker.context.fault_address)
    return None if instruction is None else instruction.where


def _budget(kernel: Kernel, shared: Shared, worker: Worker) -> KernelFault:
    context = worker.context
    block = _place(context, shared.geometry).partition(" in ")[2]
    return BudgetExceeded(
        f"kernel {kernel.entry.name}: warp {context.fault_warp} of {block} ran more than"
        f" {shared.budget} loop iterations and was stopped",
        where=_where(kernel, worker),
        hint="does a loop of it ever end? TRIPTYCH_BUDGET raises the limit; a loop that waits for another thread to"
        " write something ends only where that thread has run already",
    )


def _trap(kernel: Kernel, shared: Shared, worker: Worker) -> KernelFault:
    return KernelFault(
        f"kernel {kernel.entry.name}: trap executed {_place(worker.context, shared.geometry)}",
        where=_where(kernel, worker),
        hint="the author or the compiler put it where execution must not come",
    )


def _memory_fault(kernel: Kernel, shared: Shared, worker: Worker) -> KernelFault:
    context = worker.context
    site = _site_of(kernel, worker)
    size, kind = context.fault_size, context.fault_kind
    address = context.fault_address & 0xFFFF_FFFF_FFFF_FFFF
    what = f"Invalid __{site.space}__ {_VERBS[site.kind]} of size {size} bytes in kernel {kernel.entry.name}"
    instruction = site.instruction.instruction
    lines = [
        what,
        f"  {_place(context, shared.geometry)}",
        f"  address {address:#x} {_reason(kind, address, size, kernel, shared)}",
        f"  instruction {instruction.opcode}, PTX line {instruction.line}",
    ]
    if instruction.where.text:
        lines.append(f"  {instruction.where.text}")
    return MemoryFault("\n".join(lines), where=instruction.where, hint=_HINTS[kind])


_HINTS: Mapping[int, str] = {
    FaultKind.OUT_OF_BOUNDS: "compare the index with the array's length before the access, or pass a larger array",
    FaultKind.MISALIGNED: "let the address be a multiple of the access's size",
    FaultKind.READ_ONLY: "pass an array that can be written",
    FaultKind.SHARED_BOUNDS: "index less far, or ask for more: kernel[grid, block, shared_bytes]",
    FaultKind.LOCAL_BOUNDS: "index within the local array",
}


def _site_of(kernel: Kernel, worker: Worker) -> MemorySite:
    first: int = worker.context.sites
    fault: int = worker.context.fault_site
    return kernel.analysis.sites[(fault - first) // Site.size()]


def _reason(kind: int, address: int, size: int, kernel: Kernel, shared: Shared) -> str:
    match kind:
        case FaultKind.MISALIGNED:
            return f"is misaligned: a multiple of {size} is needed"
        case FaultKind.READ_ONLY:
            storage = _owner(shared.table.storages, address)
            return f"lies in {_name(storage, shared) if storage else 'an allocation'}, which is read-only"
        case FaultKind.SHARED_BOUNDS:
            return f"is out of bounds: the block has {shared.geometry.shared_bytes} bytes of shared memory"
        case FaultKind.LOCAL_BOUNDS:
            return f"is out of bounds: a thread has {kernel.facts.places.local_bytes} bytes of local memory"
        case _:
            return f"is out of bounds{_nearest(shared, address)}"


def _name(storage: Storage, shared: Shared) -> str:
    argument = shared.argument_of.get(storage.name)
    return f"'{storage.name}'" if argument is None else f"'{storage.name}' (argument {argument})"


def _owner(storages: Sequence[Storage], address: int) -> Storage | None:
    return next((s for s in storages if s.address <= address < s.end), None)


def _nearest(shared: Shared, address: int) -> str:
    arrays = [s for s in shared.table.storages if s.address != PARAM_WINDOW]
    if address < 4096:
        return " (a null pointer)" if address == 0 else " (near a null pointer)"
    if not arrays:
        return ""
    nearest = min(arrays, key=lambda s: _distance(s, address))
    extent = f"{_name(nearest, shared)} at {nearest.address:#x} of {nearest.size} bytes"
    if nearest.address <= address < nearest.end:
        return f": it reaches beyond the end of the allocation {extent}"
    side = "after" if address >= nearest.end else "before"
    distance = _distance(nearest, address)
    unit = "byte" if distance == 1 else "bytes"
    return f" and is {distance} {unit} {side} the nearest allocation, {extent}"


def _distance(storage: Storage, address: int) -> int:
    if address >= storage.end:
        return address - storage.end + 1
    return max(storage.address - address, 0)


def _parted_warp(kernel: Kernel, shared: Shared, worker: Worker) -> KernelFault:
    instruction = _instruction_at(kernel, worker.context.fault_address)
    opcode = "an instruction" if instruction is None else instruction.opcode
    return DeadlockError(
        f"kernel {kernel.entry.name}: {opcode} names lanes that stand elsewhere,"
        f" {_place(worker.context, shared.geometry)}; waiting for parted lanes is not supported",
        where=_where(kernel, worker),
        hint="let all lanes of the mask reach the same instruction together",
    )


_DESCRIPTIONS: Mapping[int, Callable[[Kernel, Shared, Worker], KernelFault]] = {
    FaultKind.BUDGET: _budget,
    FaultKind.TRAP: _trap,
    FaultKind.PARTED_WARP: _parted_warp,
}
