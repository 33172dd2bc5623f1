"""The device's memory: an owning storage of the host has one device address as long as it lives. Nothing is copied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triptych.core.dtypes import DTYPES
from triptych.core.forks import StateLock
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.execution.host import host_array
from triptych.execution.host_memory import Bytes, Extent, HostArray, Owner, window


@dataclass(slots=True)
class _Entry:
    """A storage and the host's memory behind it. Several owners may lend the same memory (`np.frombuffer`)."""

    storage: Storage
    extent: Extent
    owners: list[Owner]

    def look(self) -> tuple[object, Extent] | None:
        """An owner and its memory; None where none lives with it (a tensor resized in place has left it)."""
        for owner in self.owners:
            seen = owner.look()
            if seen is not None and seen[1].at_same_place(owner.extent):
                return seen
        return None


class Memory:
    """Device addresses for arrays of the host. The whole owner of an array is the storage, its view is the handle.

    Owners are held weakly: an address is free for good once its owner is gone. Safe to use from several threads.
    """

    def __init__(self) -> None:
        """An empty memory."""
        self._space = AddressSpace()
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._lock = StateLock()
        self._count = 0

    def bind(self, array: object) -> Handle:
        """The handle of a numpy array, an array of ours or a torch tensor in the host's memory.

        Raises:
            ArgumentError: for anything else, and for element types that no kernel can read.
        """
        return self.place(host_array(array))

    def place(self, host: HostArray) -> Handle:
        """The handle of an array that `host_array` has looked at."""
        with self._lock:
            entry = self._entry(host)
            offset = host.start - entry.extent.start if host.owner.extent.size else 0
            return Handle(entry.storage, host.dtype, host.shape, host.strides, offset)

    def reserve(self, size: int) -> Storage:
        """A device address for `size` bytes that a plan will allocate; `adopt` says where they came to lie."""
        with self._lock:
            return self._space.place(self._name(size), size)

    def adopt(self, storage: Storage, data: Bytes) -> None:
        """Binds memory that a plan allocated to the address that was reserved for it, as long as `data` lives."""
        owner = host_array(data).owner
        with self._lock:
            self._entries[owner.extent.start, owner.extent.size] = _Entry(storage, owner.extent, [owner])

    def map(self) -> dict[Storage, Bytes]:
        """The bytes of every storage that lives; they keep their owners alive as long as the result does."""
        found: dict[Storage, Bytes] = {}
        with self._lock:
            for key, entry in list(self._entries.items()):
                seen = entry.look()
                if seen is None:
                    del self._entries[key]
                else:
                    found[entry.storage] = window(entry.extent, seen[0])
        return found

    def at(self, address: int) -> Handle | None:
        """The bytes of a storage that lives from a device address on; None where the address lies in none."""
        with self._lock:
            for entry in self._entries.values():
                storage = entry.storage
                if storage.address <= address < storage.end and entry.look() is not None:
                    offset = address - storage.address
                    return Handle(storage, DTYPES["u8"], (storage.size - offset,), (1,), offset)
        return None

    def _entry(self, host: HostArray) -> _Entry:
        owner = host.owner
        key = (owner.extent.start, owner.extent.size)
        entry = self._living(key) or self._around(owner)
        if entry is None:
            entry = self._entries[key] = self._new(host)
        else:
            self._lend(entry, owner)
        return entry

    def _living(self, key: tuple[int, int]) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.look() is not None else None

    def _around(self, owner: Owner) -> _Entry | None:
        """The storage that holds memory which numpy does not own: another array may have lent it before."""
        if not owner.foreign or owner.extent.size == 0:
            return None
        around = (entry for entry in self._entries.values() if entry.extent.contains(owner.extent))
        return next((entry for entry in around if entry.look() is not None), None)

    def _new(self, host: HostArray) -> _Entry:
        extent = host.owner.extent
        storage = self._space.place(self._name(extent.size), extent.size, writable=extent.writable)
        return _Entry(storage, extent, [host.owner])

    def _name(self, size: int) -> str:
        name = f"array{self._count} ({size} bytes)"
        self._count += 1
        return name

    def _lend(self, entry: _Entry, owner: Owner) -> None:
        """Notes the owner, and what may be written now (`array.setflags(write=…)` changes it)."""
        if not owner.extent.at_same_place(entry.extent):
            return
        others = (known for known in entry.owners if known.identity != owner.identity)
        entry.owners = [*(known for known in others if known.look() is not None), owner]
        if owner.extent.writable != entry.extent.writable:
            entry.extent = owner.extent
            entry.storage = replace(entry.storage, writable=owner.extent.writable)


_memory = Memory()


def memory() -> Memory:
    """The memory of this process, for interactive use."""
    return _memory


def data_ptr(array: object) -> int:
    """The device address of an array's first element, for pointers inside arrays and structs.

    Raises:
        ArgumentError: where `array` is no array that a kernel can read.
    """
    return _memory.bind(array).data_ptr()
