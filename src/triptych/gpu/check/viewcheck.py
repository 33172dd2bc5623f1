"""viewcheck: an access that leaves the view of an array that the launch passed, and stays inside the array.

The array is what a device's bounds are; a kernel that is given a slice and reaches beside it reads or writes its
neighbours, which no device notices. Generated code notes the first such address at each access, when it looks up the
storage (`lower/scheduling/services.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triptych.core.checks import VIEWCHECK
from triptych.core.handles import Handle, Storage
from triptych.core.launches import Finding
from triptych.core.memory_access import MemoryAccess
from triptych.core.plan import Launch, handles_in
from triptych.gpu.lower.analysis.memory_sites import MemorySite
from triptych.gpu.lower.records import Site
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker

_VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


NO_VIEWS: Mapping[Storage, tuple[int, int]] = {}
"""What a launch passes at which nobody looks."""


def passed_views(launch: Launch) -> Mapping[Storage, tuple[int, int]]:
    """The first address and the end of what the launch passes of each storage of which it passes a part alone."""
    found: dict[Storage, tuple[int, int]] = {}
    for argument in launch.arguments:
        for handle in handles_in(argument):
            low, high = _reach(handle)
            known = found.get(handle.storage, (low, high))
            found[handle.storage] = min(low, known[0]), max(high, known[1])
    return {storage: view for storage, view in found.items() if view != (storage.address, storage.end)}


def _reach(handle: Handle) -> tuple[int, int]:
    """The first address and the end of a view's elements; an empty view says nothing of where it may be reached."""
    if handle.size == 0:
        return handle.storage.address, handle.storage.end
    steps = [(extent - 1) * stride for extent, stride in zip(handle.shape, handle.strides, strict=True)]
    low = handle.data_ptr() + sum(step for step in steps if step < 0)
    return low, handle.data_ptr() + sum(step for step in steps if step > 0) + handle.dtype.bytes


def find(kernel: Kernel, state: LaunchState, workers: Sequence[Worker]) -> Iterator[Finding]:
    """A finding for each line that left a view."""
    column = Site.position("left_view")
    told: set[object] = set()
    for number, site in enumerate(kernel.analysis.sites if any(w.sites[:, column].any() for w in workers) else ()):
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
