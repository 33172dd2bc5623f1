"""Memory as numpy arrays of bytes: every access checked lane by lane and counted request by request."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import BarrierMisuse, MemoryFault
from triptych.core.handles import Storage
from triptych.core.source import SourceLocation
from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.asynchronous.bulk_copy import UNIT_BYTES, BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import OBJECT_BYTES, MbarrierFault, elements_of
from triptych.gpu.isa.machine import PAIRED_CAS
from triptych.gpu.isa.spaces import ASYNCHRONOUS, CLUSTER, FRAME, GENERIC, GLOBAL, LOCAL, PARAM, SHARED, Space, space_at
from triptych.gpu.isa.types import TYPES, ScalarType
from triptych.gpu.oracle.atomics import updated
from triptych.gpu.oracle.cluster import ClusterMemory
from triptych.gpu.oracle.counting import Counts, Touch
from triptych.gpu.oracle.values import LANES, Lanes, Mask, lane_dtype, to_bits, unsigned

Bytes = NDArray[np.uint8]
Change = Callable[..., tuple[int, int]]
"""(an mbarrier's bits, *operands) -> its new bits, and the `MbarrierFault`."""
_VERBS: Mapping[str, str] = {"load": "read", "store": "write", "atomic": "atomic"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one lane's access goes: the bytes themselves, and their address in the space that was reached."""

    space: Space
    touch: Touch
    data: Bytes


class WarpMemory:
    """All spaces as one warp sees them."""

    def __init__(
        self, storages: MutableMapping[Storage, Bytes], parameters: Bytes, shared: Bytes, local: Bytes,
        cluster: ClusterMemory, counts: Counts,
    ) -> None:  # fmt: skip
        """`local` is an array of (lanes, bytes of a thread); `shared` is the block's, one of those of `cluster`."""
        self.cluster = cluster
        own = Storage("parameters", PARAM.window, parameters.size, writable=False)
        self.storages = ChainMap({own: parameters}, storages)
        self.parameters = parameters
        self.shared = shared
        self.local = local
        self.counts = counts
        self.doing = ""
        """The kernel and the instruction, for faults."""
        self.where: SourceLocation | None = None

    # Places -----------------------------------------------------------------------------------------------------

    def _places(
        self, space: Space, kind: str, size: int, addresses: Sequence[int], active: Mask, *, align: int | None = None
    ) -> list[_Place]:
        lanes = [lane for lane in range(LANES) if active[lane]]
        return [self._place(space, kind, lane, addresses[lane], size, align or size) for lane in lanes]

    def _place(self, space: Space, kind: str, lane: int, address: int, size: int, align: int) -> _Place:
        space, address = _resolve(space, address)
        if address % align:
            raise self._fault(space, kind, lane, address, size, f"is misaligned: a multiple of {align} is needed")
        if space is GLOBAL:
            data, start = self._find_storage(kind, lane, address, size)
        elif space.helper is CLUSTER:
            data, start = self._find_block(kind, lane, address, size)
        elif space is SHARED:
            data, start = self.shared, address
        elif space is PARAM:
            data, start = self.parameters, address
        elif space.helper is LOCAL:
            data, start = self.local[lane], address
        else:
            raise AssertionError(f"the oracle has no memory of the space {space}")
        if start + size > data.size:
            raise self._fault(space, kind, lane, address, size, "is out of bounds")
        return _Place(space, Touch(lane, address, size), data[start : start + size])

    def reach(self, space: Space, kind: str, lane: int, address: int, size: int, align: int) -> tuple[Touch, Bytes]:
        """What one lane's access reaches for, uncounted.

        Raises:
            MemoryFault: it is misaligned, or there is no such memory.
        """
        place = self._place(space, kind, lane, address, size, align)
        return place.touch, place.data

    def _find_storage(self, kind: str, lane: int, address: int, size: int) -> tuple[Bytes, int]:
        for storage, data in self.storages.items():
            if storage.address <= address < storage.end:
                if kind != "load" and not storage.writable:
                    raise self._fault(GLOBAL, kind, lane, address, size, f"lies in read-only '{storage.name}'")
                return data, address - storage.address
        raise self._fault(GLOBAL, kind, lane, address, size, "is out of bounds")

    def _find_block(self, kind: str, lane: int, address: int, size: int) -> tuple[Bytes, int]:
        """The shared memory that an address of the cluster names, and the place in it."""
        named, start = divmod(address, 1 << RANK_SHIFT)
        rank = named - 1 if named else self.cluster.rank
        if rank >= len(self.cluster.shared):
            raise self._fault(CLUSTER, kind, lane, address, size, f"names a block of rank {rank}, which there is not")
        data = self.cluster.shared[rank]
        if data is None:
            raise self._fault(CLUSTER, kind, lane, address, size, f"is of the block of rank {rank}, which has exited")
        return data, start

    def bytes_at(self, lane: int, address: int) -> Bytes | None:
        """The bytes from a generic address to the end of what holds it, None where nothing does."""
        space, place = _resolve(GENERIC, address)
        if space in (SHARED, LOCAL):
            data = self.shared if space is SHARED else self.local[lane]
            return data[place:] if place < data.size else None
        for storage, data in self.storages.items():
            if storage.address <= address < storage.end:
                return data[address - storage.address :]
        return None

    def _fault(self, space: Space, kind: str, lane: int, address: int, size: int, reason: str) -> MemoryFault:
        if space is FRAME:
            return MemoryFault(f"the stack overflows in {self.doing}", where=self.where)
        message = f"Invalid __{space}__ {_VERBS[kind]} of size {size} bytes in {self.doing}"
        return MemoryFault(f"{message}\n  by lane {lane}\n  address {address:#x} {reason}", where=self.where)

    def _count(self, kind: str, places: Sequence[_Place]) -> None:
        for space in {place.space: None for place in places}:
            touches = [place.touch for place in places if place.space is space and place.touch.size]
            self.counts.count_request(space, kind, touches)

    # Accesses ---------------------------------------------------------------------------------------------------

    def load(self, space: Space, t: ScalarType, address: Lanes, count: int, active: Mask) -> list[Lanes]:
        """`count` neighbouring elements for each active lane; 0 in the others."""
        places = self._places(space, "load", t.bytes * count, address.tolist(), active)
        self._count("load", places)
        results = np.zeros((count, LANES), unsigned(t.bits))
        for place in places:
            results[:, place.touch.lane] = place.data.view(unsigned(t.bits))
        return [row.view(lane_dtype(t)) for row in results]

    def store(self, space: Space, t: ScalarType, address: Lanes, values: Sequence[Lanes], active: Mask) -> None:
        """Neighbouring elements of each active lane, in ascending order."""
        places = self._places(space, "store", t.bytes * len(values), address.tolist(), active)
        self._count("store", places)
        bits = np.stack([to_bits(t, value) for value in values])
        for place in places:
            place.data[:] = np.ascontiguousarray(bits[:, place.touch.lane]).view(np.uint8)

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Lanes, operands: Sequence[Lanes], active: Mask,
        change: Change | None = None,
    ) -> list[Lanes]:  # fmt: skip
        """Reads, changes and writes elements for each active lane, in ascending order; gives the old values.

        `change` makes the new bits where the operation is one on an mbarrier.
        """
        count = elements_of(operation, len(operands))
        places = self._places(space, "atomic", t.bytes * count, address.tolist(), active)
        for place in places:
            if place.space is LOCAL:
                at = place.touch
                raise self._fault(LOCAL, "atomic", at.lane, at.address, at.size, "is none that atomic operations reach")
        self._count("atomic", places)
        results = np.zeros((count, LANES), unsigned(t.bits))
        bits = [to_bits(t, operand).tolist() for operand in operands]
        for place in places:
            elements, lane = place.data.view(unsigned(t.bits)), place.touch.lane
            if operation == PAIRED_CAS:
                own = [operand[lane] for operand in bits]
                results[:, lane] = elements
                elements[:] = own[2:] if elements.tolist() == own[:2] else elements
                continue
            for index, old in enumerate(elements.tolist()):
                own = [operand[lane] for operand in (bits if count == 1 else bits[index : index + 1])]
                results[index, lane] = old
                if change is not None:
                    elements[index] = self._changed(change, place, old, own)
                else:
                    elements[index] = updated(t, operation, old, own, place.space)
        return [row.view(lane_dtype(t)) for row in results]

    def _changed(self, change: Change, place: _Place, old: int, operands: Sequence[int]) -> int:
        """What becomes of an mbarrier."""
        new, fault = change(old, *operands)
        if fault:
            name, at = MbarrierFault(fault).name, f"by lane {place.touch.lane}, address {place.touch.address:#x}"
            raise BarrierMisuse(f"mbarrier in {self.doing}: {name} {at}", where=self.where)
        return new

    def copy_to_shared(self, size: int, target: Lanes, source: Lanes, source_size: Lanes, active: Mask) -> None:
        """`size` bytes for each active lane from global to shared memory; from `source_size` on, zeros."""
        targets = self._places(SHARED, "store", size, target.tolist(), active)
        wanted = [min(size, amount) for amount in source_size.tolist()]
        lanes = [place.touch.lane for place in targets if wanted[place.touch.lane]]
        sources = {lane: self._place(GLOBAL, "load", lane, int(source[lane]), wanted[lane], size) for lane in lanes}
        self._count("load", list(sources.values()))
        self._count("store", targets)
        for place in targets:
            place.data[:] = 0
            if place.touch.lane in sources:
                place.data[: wanted[place.touch.lane]] = sources[place.touch.lane].data

    def copy_bulk(self, copy: BulkCopy, lane: int, targets: Sequence[int], source: int, size: int) -> None:
        """One lane's bulk copy, to each of the places."""
        written = "store" if copy.type is None else "atomic"
        if size % UNIT_BYTES:
            raise self._fault(copy.source, "load", lane, source, size, f"is copied from, no multiple of {UNIT_BYTES}")
        own = SHARED if copy.source is ASYNCHRONOUS else copy.source
        for target in targets if size else ():
            start = self._place(own, "load", lane, source, size, UNIT_BYTES)
            end = self._place(copy.target, written, lane, target, size, UNIT_BYTES)
            if target == targets[0]:
                self.counts.count_request(copy.source, "load", [start.touch])
            self.counts.count_request(copy.target, written, [end.touch])
            if copy.type is None:
                end.data[:] = start.data.copy()
                continue
            elements, operands = (data.view(unsigned(copy.type.bits)) for data in (end.data, start.data))
            for index, (old, b) in enumerate(zip(elements.tolist(), operands.tolist(), strict=True)):
                elements[index] = updated(copy.type, copy.operation, old, [b], copy.target)

    def complete(self, lane: int, address: int, amount: int, change: Change) -> None:
        """`amount` transactions of the mbarrier at an address of the cluster are complete."""
        place = self._place(CLUSTER, "atomic", lane, address, OBJECT_BYTES, OBJECT_BYTES)
        bits = place.data.view(np.uint64)
        bits[0] = self._changed(change, place, int(bits[0]), [-amount])

    def load_matrix(self, address: Lanes, count: int, transposed: bool, active: Mask) -> list[Lanes]:
        """`ldmatrix`: lane 8i + r gives the address of row r of matrix i; other lanes' addresses are not used."""
        givers = active & (np.arange(LANES) < 8 * count)
        places = self._places(SHARED, "load", 16, address.tolist(), givers)
        self._count("load", places)
        rows = np.zeros((LANES, 8), np.uint16)
        for place in places:
            rows[place.touch.lane] = place.data.view(np.uint16)
        results: list[Lanes] = []
        for matrix in rows.reshape(4, 8, 8)[:count]:
            elements = np.ascontiguousarray(matrix.T if transposed else matrix)
            results.append(elements.view(lane_dtype(TYPES["b32"])).reshape(LANES))
        return results

    def store_matrix(self, address: Lanes, matrices: Sequence[Lanes], transposed: bool, active: Mask) -> None:
        """`stmatrix`: as `load_matrix`, the other way round."""
        givers = active & (np.arange(LANES) < 8 * len(matrices))
        places = self._places(SHARED, "store", 16, address.tolist(), givers)
        self._count("store", places)
        rows = [word.view(np.uint16).reshape(8, 8) for word in matrices]
        for place in places:
            matrix, row = divmod(place.touch.lane, 8)
            place.data[:] = np.ascontiguousarray((rows[matrix].T if transposed else rows[matrix])[row]).view(np.uint8)


def _resolve(space: Space, address: int) -> tuple[Space, int]:
    """The space that is reached, and the address in it."""
    if len(space.sites) == 1:
        return space.sites[0], address
    reached = space_at(address)
    place = address - reached.window
    names_block = reached is SHARED and CLUSTER in space.reaches and place >> RANK_SHIFT
    return CLUSTER if names_block else reached, place
