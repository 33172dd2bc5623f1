"""Device addresses of a capture: of its own arrays, and of arrays with data that the program made itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from triptych.core.dtypes import DTYPES
from triptych.core.errors import CaptureError
from triptych.core.handles import Handle, Storage
from triptych.core.plan import CONSTANT_LIMIT
from triptych.execution.call_site import call_site
from triptych.execution.capture.arrays import CapturedArray
from triptych.execution.host_memory import Bytes, Extent, HostArray, Owner, window
from triptych.execution.memory import Memory
from triptych.execution.torch_tensors import captured_tensor, is_tensor


@dataclass(frozen=True, slots=True)
class CapturedHost(HostArray):
    """An array of a capture, as languages look at arrays: its addresses of the host are those of the device."""

    handle: Handle = field(kw_only=True)

    @classmethod
    def of(cls, handle: Handle, element: object) -> CapturedHost:
        """The layout of a handle; `element` is the dtype as the array's maker has it."""
        storage = handle.storage
        owner = Owner(storage.address, Extent(storage.address, storage.size, storage.writable), _nobody, foreign=False)
        return cls(owner, element, handle.dtype, handle.shape, handle.strides, handle.data_ptr(), handle=handle)


def _nobody() -> None:
    """What owns the memory is made when the plan is run."""


@dataclass(slots=True)
class HostData:
    """Memory of the host that the program filled itself, and what of it the plan has."""

    storage: Storage
    owner: object
    """Keeps the memory alive, so that no other gets its address."""
    contents: bytes


class CaptureMemory(Memory):
    """Addresses follow from the order of requests alone. Nothing is run on this memory."""

    def __init__(self, before: CaptureMemory | None = None) -> None:
        """Empty, or as another one is now."""
        super().__init__(None if before is None else before._space.clone())
        self.known: dict[int, Storage] = {} if before is None else dict(before.known)
        """What the plan may name, in order, by identity: captures have equal addresses."""
        self._kept: dict[int, tuple[Storage, Storage]] = {}
        """Storages of other captures, and what stands for each here."""
        self.host: dict[tuple[int, int], HostData] = {} if before is None else {
            key: HostData(one.storage, one.owner, one.contents) for key, one in before.host.items()
        }  # fmt: skip

    def new(self, name: str, size: int) -> Storage:
        """A storage of its own."""
        with self._lock:
            storage = self._space.place(name, size)
            self.known[id(storage)] = storage
            return storage

    def reserve(self, size: int) -> Storage:
        """A storage that a plan will allocate."""
        return self.new(f"array{len(self.known)}", size)

    def find(self, array: object) -> HostArray:
        """The layout of an array of the capture, or of one with data.

        Raises:
            ArgumentError: for anything else.
        """
        if isinstance(array, CapturedArray):
            return CapturedHost.of(array.handle, array.dtype)
        if is_tensor(array):
            found = captured_tensor(array)
            if found is not None:
                return CapturedHost.of(self.current(found), array.dtype)
        return super().find(array)

    def place(self, host: HostArray) -> Handle:
        """The handle; data of the host comes into the plan as a constant, again where it has changed since.

        Raises:
            CaptureError: for more data than a plan takes.
        """
        if isinstance(host, CapturedHost):
            return self.current(host.handle)
        storage, extent = self._upload(host), host.owner.extent
        return Handle(storage, host.dtype, host.shape, host.strides, host.start - extent.start if extent.size else 0)

    def current(self, handle: Handle) -> Handle:
        """The handle; for one of another call that was captured, the same view of new memory with unknown contents.

        So a workspace may be kept from call to call, and a result cannot be.
        """
        old = handle.storage
        if id(old) in self.known:
            return handle
        if id(old) not in self._kept:
            self._kept[id(old)] = old, self.new(f"{old.name} (kept)", old.size)
            self.kept(self._kept[id(old)][1])
        return replace(handle, storage=self._kept[id(old)][1])

    def kept(self, storage: Storage) -> None:
        """Memory of another capture is used again; whoever records it says what follows."""

    def at(self, address: int) -> Handle | None:
        """The bytes of a storage of the capture from a device address on."""
        for storage in self.known.values():
            if storage.address <= address < storage.end:
                offset = address - storage.address
                return Handle(storage, DTYPES["u8"], (storage.size - offset,), (1,), offset)
        return None

    def map(self) -> NoReturn:
        """An error: there is no memory."""
        raise CaptureError("nothing runs while a program is captured", where=call_site())

    def lend(self) -> NoReturn:
        """An error: there is no memory."""
        self.map()

    def _upload(self, host: HostArray) -> Storage:
        extent, owner = host.owner.extent, host.owner.look()
        if extent.size > CONSTANT_LIMIT:
            raise CaptureError(
                f"{host.label} has {extent.size} bytes that the program made itself; a plan takes {CONSTANT_LIMIT}",
                where=call_site(),
                hint="compute it in a kernel, or allocate it with tt.empty",
            )
        contents = bytes(window(extent, owner))
        known = self.host.get((extent.start, extent.size))
        if known is not None:
            if known.contents != contents:
                known.contents = contents
                self.changed(known)
            return known.storage
        storage = self.new(f"constant{len(self.host)}", extent.size)
        self.host[extent.start, extent.size] = made = HostData(storage, owner, contents)
        self.made(made)
        return storage

    def made(self, data: HostData) -> None:
        """Data of the host is used for the first time; whoever records it says what follows."""

    def changed(self, data: HostData) -> None:
        """Data of the host is used again, and the program has changed it since."""

    def adopt(self, storage: Storage, data: Bytes) -> None:
        """An error: there is no memory."""
        self.map()
