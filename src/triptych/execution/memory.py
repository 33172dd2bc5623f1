"""The device's memory: an owning storage of the host has one device address as long as it lives. Nothing is copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from triptych.core.dtypes import DTYPES
from triptych.core.forks import StateLock
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.placed_memory import PlacedMemory
from triptych.execution.host import host_array
from triptych.execution.host_memory import Bytes, Extent, HostArray, Owner, window

if TYPE_CHECKING:
    from triptych.execution.recorder import Recorder

_MOST_HANDLES = 256
"""Of one storage: more views of it than that are not passed again and again."""


@dataclass(slots=True)
class _Entry:
    """A storage and the host's memory behind it. Several owners may lend the same memory (`np.frombuffer`)."""

    storage: Storage
    extent: Extent
    owners: list[Owner]
    handles: dict[tuple[Any, ...], Handle] = field(default_factory=dict[tuple[Any, ...], Handle])
    """Those made of it: who passes an array again gets the same one, by which launches know each other."""

    @property
    def key(self) -> tuple[int, int]:
        """Where and how large the memory is."""
        return self.extent.start, self.extent.size

    def look(self) -> object | None:
        """An owner; None where none lives with the memory (a tensor resized in place has left it)."""
        for owner in self.owners:
            seen = owner.look()
            if seen is not None:
                return seen
        return None


class Memory:
    """Device addresses for arrays of the host. The whole owner of an array is the storage, its view is the handle.

    Owners are held weakly: an address is free for good once its owner is gone. Safe to use from several threads.
    """

    recorder: Recorder | None = None
    """Who notes what would run on this memory; None: it is run."""

    def __init__(self, space: AddressSpace | None = None) -> None:
        """An empty memory, whose addresses come from a space of its own where none is given."""
        self._space = space or AddressSpace()
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._owners: dict[int, Owner] = {}
        """By identity, those of entries: whoever is bound again is found here."""
        self._entry_of: dict[int, _Entry] = {}
        """The same owners' entries."""
        self._placed: PlacedMemory | None = None
        """What `lend` gives; None where it has to be made anew."""
        self._lock = StateLock()
        self._count = 0

    def bind(self, array: object) -> Handle:
        """The handle of a numpy array, an array of ours or a torch tensor in the host's memory.

        Raises:
            ArgumentError: for anything else, and for element types that no kernel can read.
        """
        return self.place(self.find(array))

    def find(self, array: object) -> HostArray:
        """As `host_array`, and quicker for an array that was bound before.

        Raises:
            ArgumentError: as there.
        """
        return host_array(array, self._owners)

    def place(self, host: HostArray) -> Handle:
        """The handle of an array that `host_array` has looked at."""
        owner = host.owner
        entry = self._entry_of.get(owner.identity)  # it stays while the owner lives, as it does here
        if entry is None or not self._is_lent(entry, owner):
            with self._lock:
                entry = self._entry(host)
        key = host.start, host.shape, host.strides, host.dtype.name
        return entry.handles.get(key) or self._make_handle(entry, host, key)

    def _make_handle(self, entry: _Entry, host: HostArray, key: tuple[Any, ...]) -> Handle:
        offset = host.start - entry.extent.start if host.owner.extent.size else 0
        made = Handle(entry.storage, host.dtype, host.shape, host.strides, offset)
        if len(entry.handles) >= _MOST_HANDLES:
            entry.handles.clear()
        entry.handles[key] = made
        return made

    def reserve(self, size: int) -> Storage:
        """A device address for `size` bytes that a plan will allocate; `adopt` says where they came to lie."""
        with self._lock:
            return self._space.place(self._name(size), size)

    def adopt(self, storage: Storage, data: Bytes) -> None:
        """Binds memory that a plan allocated to the address that was reserved for it, as long as `data` lives."""
        owner = host_array(data).owner
        with self._lock:
            self._add(_Entry(storage, owner.extent, []), owner)

    def map(self) -> dict[Storage, Bytes]:
        """The bytes of every storage that lives; they keep their owners alive as long as the result does."""
        with self._lock:
            owners = self._living()
            entries = self._entries.values()
            return {one.storage: window(one.extent, owner) for one, owner in zip(entries, owners, strict=True)}

    def lend(self) -> tuple[PlacedMemory, Sequence[object]]:
        """As `map`, for one launch, and quick: the bytes stay as long as somebody keeps the owners, who come second."""
        with self._lock:
            owners = self._living()
            if self._placed is None:
                self._placed = PlacedMemory(
                    {entry.storage: window(entry.extent, None) for entry in self._entries.values()}
                )
            return self._placed, owners

    def _living(self) -> list[object]:
        """An owner of each entry, in their order; entries without one are forgotten."""
        found = [entry.look() for entry in self._entries.values()]
        if all(owner is not None for owner in found):
            return found
        gone = [entry for entry, owner in zip(self._entries.values(), found, strict=True) if owner is None]
        for entry in gone:
            self._forget(entry)
        return [owner for owner in found if owner is not None]

    def at(self, address: int) -> Handle | None:
        """The bytes of a storage that lives from a device address on; None where the address lies in none."""
        with self._lock:
            for entry in self._entries.values():
                storage = entry.storage
                if storage.address <= address < storage.end and entry.look() is not None:
                    offset = address - storage.address
                    return Handle(storage, DTYPES["u8"], (storage.size - offset,), (1,), offset)
        return None

    def _is_lent(self, entry: _Entry, owner: Owner) -> bool:
        """Whether the entry has this very owner, and what may be written is as the owner has it."""
        return self._owners.get(owner.identity) is owner and owner.extent.writable == entry.extent.writable

    def _entry(self, host: HostArray) -> _Entry:
        owner = host.owner
        entry = self._with_extent(owner.extent) or self._around(owner)
        if entry is None:
            extent = owner.extent
            storage = self._space.place(self._name(extent.size), extent.size, writable=extent.writable)
            entry = _Entry(storage, extent, [])
            self._add(entry, owner)
        elif owner.extent.at_same_place(entry.extent):
            self._lend_again(entry, owner)
        return entry

    def _with_extent(self, extent: Extent) -> _Entry | None:
        entry = self._entries.get((extent.start, extent.size))
        return entry if entry is not None and entry.look() is not None else None

    def _around(self, owner: Owner) -> _Entry | None:
        """The storage that holds memory which numpy does not own: another array may have lent it before."""
        if not owner.foreign or owner.extent.size == 0:
            return None
        around = (entry for entry in self._entries.values() if entry.extent.contains(owner.extent))
        return next((entry for entry in around if entry.look() is not None), None)

    def _add(self, entry: _Entry, owner: Owner) -> None:
        """A new entry, in the place of one whose memory is gone."""
        gone = self._entries.get(entry.key)
        if gone is not None:
            self._forget(gone)
        self._entries[entry.key] = entry
        self._lend_again(entry, owner)
        self._placed = None

    def _forget(self, entry: _Entry) -> None:
        del self._entries[entry.key]
        self._drop(entry.owners)
        self._placed = None

    def _drop(self, owners: Iterable[Owner]) -> None:
        """Of owners that are gone another may have the identity by now."""
        for owner in owners:
            if self._owners.get(owner.identity) is owner:
                del self._owners[owner.identity], self._entry_of[owner.identity]

    def _name(self, size: int) -> str:
        name = f"array{self._count} ({size} bytes)"
        self._count += 1
        return name

    def _lend_again(self, entry: _Entry, owner: Owner) -> None:
        """Notes the owner, and what may be written now (`array.setflags(write=…)` changes it)."""
        stay = [known.identity != owner.identity and known.look() is not None for known in entry.owners]
        self._drop(known for known, stays in zip(entry.owners, stay, strict=True) if not stays)
        entry.owners = [*compress(entry.owners, stay), owner]
        self._owners[owner.identity], self._entry_of[owner.identity] = owner, entry
        if owner.extent.writable != entry.extent.writable:
            entry.extent = owner.extent
            entry.storage = replace(entry.storage, writable=owner.extent.writable)
            entry.handles.clear()
            self._placed = None


_in_force = Memory()


def memory() -> Memory:
    """The memory in force: that of this process, for interactive use, or that of a capture."""
    return _in_force


def put_in_force(other: Memory) -> Memory:
    """All threads use the other memory from now on; gives back what they used before."""
    global _in_force
    before, _in_force = _in_force, other
    return before


def data_ptr(array: object) -> int:
    """The device address of an array's first element, for pointers inside arrays and structs.

    Raises:
        ArgumentError: where `array` is no array that a kernel can read.
    """
    return memory().bind(array).data_ptr()
