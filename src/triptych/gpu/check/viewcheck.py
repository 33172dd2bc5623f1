"""viewcheck: an access that leaves the view of an array that the launch passed, and stays inside the array.

The array is what a device's bounds are; a kernel that is given a slice and reaches beside it reads or writes its
neighbours, which no device notices. Generated code notes the first such address at each access, when it looks up the
storage (`lower/scheduling/services.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from triptych.core.checks import VIEWCHECK
from triptych.core.handles import Handle, Storage
from triptych.core.identity import kept_by_identity
from triptych.core.launches import Finding
from triptych.core.memory_access import MemoryAccess
from triptych.core.plan import Launch, handles_in
from triptych.gpu.lower.analysis.memory_sites import MemorySite
from triptych.gpu.lower.records import Site
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.storage_table import Views
from triptych.gpu.run.worker import LaunchState, Worker

_VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


NO_VIEWS: Views = {}
"""What a launch passes at which nobody looks."""


@kept_by_identity(64)
def passed_views(launch: Launch) -> Views:
    """The first address and the end of what the launch passes of each storage of which it passes a part alone."""
    found: dict[int, tuple[Storage, int, int]] = {}
    for argument in launch.arguments:
        for handle in handles_in(argument):
            storage, (low, high) = handle.storage, _reach(handle)
            known = found.get(storage.address)
            if known is not None:
                low, high = min(low, known[1]), max(high, known[2])
            found[storage.address] = storage, low, high
    return {one: (low, high) for one, low, high in found.values() if low != one.address or high != one.end}


def _reach(handle: Handle) -> tuple[int, int]:
    """The first address and the end of a view's elements; an empty view says nothing of where it may be reached."""
    if 0 in handle.shape:
        return handle.storage.address, handle.storage.end
    before, behind = _span(handle.shape, handle.strides)
    start = handle.storage.address + handle.offset
    return start + before, start + behind + handle.dtype.bytes


@lru_cache(maxsize=4096)
def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Bytes from the first element to the lowest one, and to the highest."""
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)


def find(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> Iterator[Finding]:
    """A finding for each line that left a view."""
    column = Site.position("left_view")
    told: set[object] = set()
    if not state.table.views or not any(worker.sites[:, column].any() for worker in workers):
        return
    for number, site in enumerate(kernel.analysis.sites):
        addresses = [int(worker.sites[number, column]) for worker in workers if worker.sites[number, column]]
        instruction = site.instruction.instruction
        place = instruction.where, instruction.frames, site.kind
        if addresses and place not in told:
            told.add(place)
            yield _finding(site, min(addresses), state)


def _finding(site: MemorySite, address: int, state: LaunchState) -> Finding:
    instruction = site.instruction.instruction
    storage = next(one for one in state.table.storages if one.address <= address < one.end)
    passed = state.argument_of[storage.name]
    low, high = _reach(passed.handle)
    distance, side = (address - high + 1, "after the end") if address >= high else (low - address, "before the start")
    return Finding(
        VIEWCHECK.name,
        VIEWCHECK.severity,
        f"{_VERBS[site.kind]} {distance} {'byte' if distance == 1 else 'bytes'} {side} of {passed.label}, which is a"
        f" part of a larger array: what lies there belongs to the array, not to the argument",
        instruction.where,
        instruction.frames,
        hint="compare the index with the argument's length, or pass the whole array",
        memory=MemoryAccess(site.kind, site.space.name, address, site.bytes, storage.name),
    )
