"""memcheck: an access outside of every allocation, a misaligned one, or a store to what is read-only.

Generated code looks at every access (`lower/memory`) and records the first that fails; here it becomes the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triptych.core.errors import MemoryFault
from triptych.core.handles import Storage
from triptych.core.memory_access import MemoryAccess
from triptych.gpu.check.culprit import Culprit
from triptych.gpu.check.null_arguments import null_arguments
from triptych.gpu.hardware import FIRST_HEAP_ADDRESS, NO_RANK, PARAM_WINDOW, RANK_SHIFT
from triptych.gpu.isa.asynchronous.bulk_copy import UNIT_BYTES
from triptych.gpu.lower.analysis.memory_sites import MemorySite
from triptych.gpu.lower.records import FaultKind, Site
from triptych.gpu.run.heap import DeviceHeap
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker

_NULL_PAGE_BYTES = 4096
"""Below this address nothing is ever allocated: an access there comes from a null pointer."""
_VERBS = {"load": "read", "store": "write", "atomic": "atomic"}


def fault(kernel: Kernel, state: LaunchState, worker: Worker, by: Culprit) -> MemoryFault:
    """The error for the access that a worker recorded."""
    context = worker.context
    site = site_of(kernel, worker)
    if site.space.passes_results:
        return _overflow(kernel, state, site, by)
    size, wrong = context.fault_size, WRONG[FaultKind(context.fault_kind)]
    address = context.fault_address & 0xFFFF_FFFF_FFFF_FFFF
    reason, allocation = wrong.reason(kernel, state, address, size)
    what = f"Invalid __{site.space}__ {_VERBS[site.kind]} of size {size} bytes in kernel {kernel.entry.name}"
    return by.fault(
        MemoryFault, what, wrong.hint(kernel, state, address),
        kernel.entry.name, site.instruction.instruction, place=f"address {address:#x} {reason}",
        memory=MemoryAccess(site.kind, site.space.name, address, size, None if allocation is None else allocation.name),
    )  # fmt: skip


def _overflow(kernel: Kernel, state: LaunchState, site: MemorySite, by: Culprit) -> MemoryFault:
    """The error for a call whose frame lies beyond the thread's stack."""
    instruction = site.instruction.instruction
    return MemoryFault(
        f"kernel {kernel.entry.name}: the stack overflows {by}: a thread has"
        f" {state.geometry.local_bytes} bytes for its variables and its calls",
        where=instruction.where,
        hint="does the recursion end? TRIPTYCH_STACK_BYTES raises the limit",
        frames=instruction.frames,
        kernel=kernel.entry.name,
        thread=by.thread,
        block=by.block,
    )


def site_of(kernel: Kernel, worker: Worker) -> MemorySite:
    """The access that a worker's fault is of."""
    first: int = worker.context.sites
    fault: int = worker.context.fault_site
    return kernel.analysis.sites[(fault - first) // Site.size()]


def _name(storage: Storage, state: LaunchState) -> str:
    passed = state.argument_of.get(storage.name)
    return f"'{storage.name}'" if passed is None else f"'{storage.name}' ({passed.label})"


def _element(storage: Storage, state: LaunchState, address: int) -> str:
    """Which element of the array the address would be, counted in the array's own type from where it was passed."""
    passed = state.argument_of.get(storage.name)
    if passed is None or passed.handle.ndim != 1 or not passed.handle.contiguous:
        return ""
    element = (address - passed.handle.data_ptr()) // passed.handle.dtype.bytes
    return f", as its element {element} of {passed.handle.size}"


def _owner(storages: Sequence[Storage], address: int) -> Storage | None:
    return next((s for s in storages if s.address <= address < s.end), None)


def _misaligned(_: Kernel, __: LaunchState, ___: int, size: int) -> tuple[str, None]:
    return f"is misaligned: a multiple of {size} is needed", None


def _read_only(_: Kernel, state: LaunchState, address: int, __: int) -> tuple[str, Storage | None]:
    storage = _owner(state.table.storages, address)
    return f"lies in {_name(storage, state) if storage else 'an allocation'}, which is read-only", storage


_ELSEWHERE = "stands for an address that is none of shared memory"


def _lies_elsewhere(address: int) -> bool:
    """Whether it stands for an address that is none of shared memory."""
    return address >> RANK_SHIFT == NO_RANK + 1


def _outside_shared(kernel: Kernel, state: LaunchState, address: int, _: int) -> tuple[str, None]:
    is_index = address >= (1 << 32) - (1 << RANK_SHIFT - 1)  # a little below 0
    if _lies_elsewhere(address) and not is_index:
        return f"is out of bounds: it {_ELSEWHERE}", None
    start = kernel.facts.layout.shared_start
    behind = f" behind the {start} that the system reserves" if start else ""
    size = state.geometry.shared_bytes - start
    return f"is out of bounds: the block has {size} bytes of shared memory{behind}", None


def _block_of(address: int) -> str:
    """Whose memory an address of the cluster's shared memory is."""
    named = address >> RANK_SHIFT
    return f"the block of rank {named - 1}" if named else "the block itself"


def _outside_cluster_shared(kernel: Kernel, state: LaunchState, address: int, _: int) -> tuple[str, None]:
    start, offset = kernel.facts.layout.shared_start, address & ((1 << RANK_SHIFT) - 1)
    size = state.geometry.shared_bytes
    part = f", the first {start} of which the system reserves" if start else ""
    message = (
        f"is out of bounds: {_block_of(address)} has {size} bytes of shared memory{part}; the access is at {offset}"
    )
    return message, None


def _in_no_block(_: Kernel, state: LaunchState, address: int, __: int) -> tuple[str, None]:
    size = state.geometry.cluster_size
    blocks = "one block, of rank 0" if size == 1 else f"{size} blocks, of ranks 0 to {size - 1}"
    rest = f"; it {_ELSEWHERE}" if _lies_elsewhere(address) else ""
    return f"names {_block_of(address)}: the cluster has {blocks}{rest}", None


def _in_exited_block(_: Kernel, __: LaunchState, address: int, ___: int) -> tuple[str, None]:
    return f"is of {_block_of(address)}, which has exited", None


def _bulk_size(_: Kernel, __: LaunchState, ___: int, size: int) -> tuple[str, None]:
    return f"is copied from in bulk: the size {size} is no multiple of {UNIT_BYTES}", None


def _bulk_alignment(_: Kernel, __: LaunchState, ___: int, ____: int) -> tuple[str, None]:
    return f"is misaligned: bulk copies need a multiple of {UNIT_BYTES}", None


def _outside_local(_: Kernel, state: LaunchState, __: int, ___: int) -> tuple[str, None]:
    return f"is out of bounds: a thread has {state.geometry.local_bytes} bytes of local memory", None


def _atomic_in_local(_: Kernel, __: LaunchState, ___: int, ____: int) -> tuple[str, None]:
    return "is in local memory, which atomic operations do not reach (PTX manual, atom and red)", None


def _outside(kernel: Kernel, state: LaunchState, address: int, _: int) -> tuple[str, Storage | None]:
    if FIRST_HEAP_ADDRESS <= address < PARAM_WINDOW:
        return _outside_allocations(state.heap, address), None
    arrays = [s for s in state.table.storages if s.address < FIRST_HEAP_ADDRESS]
    if address < _NULL_PAGE_BYTES:
        which = null_arguments(kernel, state)
        told = "a null pointer" if address == 0 else "near a null pointer"
        return f"is out of bounds ({told}{': ' if which else ''}{which})", None
    if not arrays:
        return "is out of bounds", None
    address -= address >> 63 << 64  # what lies so high is a pointer less than zero, whose distances are those below
    nearest = min(arrays, key=lambda s: _distance(s, address))
    extent = f"{_name(nearest, state)} at {nearest.address:#x} of {nearest.size} bytes"
    extent += _element(nearest, state, address)
    if nearest.address <= address < nearest.end:
        return f"is out of bounds: it reaches beyond the end of the allocation {extent}", nearest
    side = "after" if address >= nearest.end else "before"
    distance = _distance(nearest, address)
    unit = "byte" if distance == 1 else "bytes"
    return f"is out of bounds and is {distance} {unit} {side} the nearest allocation, {extent}", nearest


def _outside_allocations(heap: DeviceHeap | None, address: int) -> str:
    """What is wrong with an address of the heap."""
    nearest = None if heap is None else heap.nearest(address)
    if nearest is None:
        return "is out of bounds: nothing is allocated on the heap any more"
    start, size = nearest
    if start <= address < start + size:
        return f"is out of bounds: it reaches beyond the end of the {size} bytes that malloc gave at {start:#x}"
    side, distance = ("after", address - start - size + 1) if address >= start else ("before", start - address)
    unit = "byte" if distance == 1 else "bytes"
    return f"is out of bounds and is {distance} {unit} {side} the {size} bytes that malloc gave at {start:#x}"


def _distance(storage: Storage, address: int) -> int:
    if address >= storage.end:
        return address - storage.end + 1
    return max(storage.address - address, 0)


def _hint_outside(kernel: Kernel, state: LaunchState, address: int) -> str:
    if address >= _NULL_PAGE_BYTES:
        return "compare the index with the array's length before the access, or pass a larger array"
    which = null_arguments(kernel, state)
    if which:
        return f"pass an array in the place of None or 0 ({which}), or test the pointer first"
    return "the kernel read this pointer from memory or computed it: look where it comes from"


def _always(hint: str) -> Callable[[Kernel, LaunchState, int], str]:
    return lambda _, __, ___: hint


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with an access."""

    reason: Callable[[Kernel, LaunchState, int, int], tuple[str, Storage | None]]
    """(kernel, launch, address, size) -> what is wrong with the address, and the allocation that this names."""
    hint: Callable[[Kernel, LaunchState, int], str]
    """(kernel, launch, address) -> what to do."""


WRONG: Mapping[FaultKind, Wrong] = {
    FaultKind.OUT_OF_BOUNDS: Wrong(_outside, _hint_outside),
    FaultKind.MISALIGNED: Wrong(_misaligned, _always("let the address be a multiple of the access's size")),
    FaultKind.READ_ONLY: Wrong(_read_only, _always("pass an array that can be written")),
    FaultKind.SHARED_BOUNDS: Wrong(
        _outside_shared, _always("index less far, or ask for more: kernel[grid, block, shared_bytes]")
    ),
    FaultKind.CLUSTER_BOUNDS: Wrong(
        _outside_cluster_shared, _always("index less far, or ask for more: kernel[grid, block, shared_bytes]")
    ),
    FaultKind.CLUSTER_RANK: Wrong(_in_no_block, _always("map to a rank below the cluster's blocks")),
    FaultKind.CLUSTER_EXITED: Wrong(
        _in_exited_block, _always("let all blocks of the cluster meet at its barrier before any of them ends")
    ),
    FaultKind.BULK_SIZE: Wrong(_bulk_size, _always("copy the rest of the bytes by loads and stores")),
    FaultKind.BULK_ALIGNMENT: Wrong(
        _bulk_alignment, _always(f"align variables (`__align__({UNIT_BYTES})`), and offsets into arrays")
    ),
    FaultKind.LOCAL_BOUNDS: Wrong(_outside_local, _always("index within the local array")),
    FaultKind.ATOMIC_IN_LOCAL: Wrong(
        _atomic_in_local, _always("a thread's own variable needs no atomic operation: add to it, compare and set it")
    ),
}
"""The kinds of fault that are this check's."""
