"""A GPU that is asked how long launches take: by events, with its L2 read full of something else, or in graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from device import Device, DriverError, Extents
from launch_arguments import Places, argument_of
from time_inputs import Array, pattern, values_of

from triptych.core.handles import Storage
from triptych.core.plan import Allocate, Constant, Launch, Plan

FLUSH_BYTES = 256 << 20
_BLOCKS, _THREADS = 132 * 8, 256
_ROUNDS = 64
_COPIED = 1 << 30
_ATTRIBUTES = {"registers": 4, "local_bytes": 3, "static_shared_bytes": 1}
"""Of functions, by their numbers in `CUfunction_attribute`."""
_MOST_DYNAMIC_SHARED = 8
_NO_SYNC_WITH_DEFAULT, _RELAXED = 1, 2
HELPERS = ("nothing", "empty kernel", "empty kernel, 2112 blocks", "read 1 GiB", "copy 1 GiB", "fill 1 GiB",
           "read 16 MiB 64 times")  # fmt: skip
"""What is timed beside the cases, to understand them by."""


class _NoDriver:
    """A driver that does nothing, and says that it went well."""

    def __getattr__(self, _: str) -> Callable[..., int]:
        return lambda *_: 0


@dataclass(frozen=True, slots=True)
class Call:
    """What one call asks of the device: each entry puts something into the stream."""

    entries: Sequence[Callable[[], None]]
    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Of each launch: kernel, grid, block and shared memory, and what the device says of the kernel."""

    def enqueue(self) -> None:
        """Puts all of it into the stream."""
        for entry in self.entries:
            entry()


class TimingDevice(Device):
    """The first GPU, with a stream of its own."""

    def __init__(self, *, dry: bool = False) -> None:
        """Opens it, or nothing that looks like it."""
        super().__init__(driver=_NoDriver() if dry else None)
        self._dry = dry
        self._stream, self._begin, self._end = self._new_stream(), ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self._begin, self._end):
            self._call("cuEventCreate", ctypes.byref(event), 0)
        self._patterns: dict[str, tuple[ctypes.c_uint64, int]] = {}
        self._flush: Callable[[], None] = lambda: None
        self._telling = None if dry else _open_telling()

    def _new_stream(self) -> ctypes.c_void_p:
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), _NO_SYNC_WITH_DEFAULT)
        return stream

    # --- Timing ---------------------------------------------------------------------------------------------------

    def _seconds(self) -> float:
        """Between the events."""
        self._call("cuEventSynchronize", self._end)
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), self._begin, self._end)
        return milliseconds.value / 1000

    def time_cold(self, call: Call) -> float:
        """Seconds of one call behind the reading of FLUSH_BYTES."""
        self._flush()
        self._call("cuEventRecord", self._begin, self._stream)
        call.enqueue()
        self._call("cuEventRecord", self._end, self._stream)
        return self._seconds()

    def time_graph(self, call: Call, calls: int, launches: int) -> list[float]:
        """Seconds of one call among `calls` of a graph, for each launch of that but the first."""
        usual, self._stream = self._stream, self._new_stream()
        try:
            instance = self._captured(call, calls)
            return [self._graph_seconds(instance) / calls for _ in range(launches + 1)][1:]
        finally:  # of a capture that failed nothing is left in the other stream
            self._stream = usual

    def _captured(self, call: Call, calls: int) -> ctypes.c_void_p:
        graph, instance = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, _RELAXED)
        for _ in range(calls):
            call.enqueue()
        self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(instance), graph, ctypes.c_uint64(0))
        return instance

    def _graph_seconds(self, instance: ctypes.c_void_p) -> float:
        self._call("cuEventRecord", self._begin, self._stream)
        self._call("cuGraphLaunch", instance, self._stream)
        self._call("cuEventRecord", self._end, self._stream)
        return self._seconds()

    def state(self) -> dict[str, int]:
        """Clocks in MHz, temperature in °C and power in mW, as the driver tells them; none where it does not."""
        return {} if self._telling is None else self._telling()

    # --- Memory ---------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> ctypes.c_uint64:
        """A place of so many bytes."""
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(size, 16)))
        return place

    def zeros(self, size: int) -> ctypes.c_uint64:
        """A place of so many bytes, all of them zero."""
        place = self.allocate(size)
        self._call("cuMemsetD8_v2", place, 0, ctypes.c_size_t(size))
        return place

    def _filled(self, one: Array) -> ctypes.c_uint64:
        """A place with an input's values: the pattern is copied on the device, which is quicker than to send it all."""
        if one.below:
            return self.copy_there(values_of(one))
        if one.dtype not in self._patterns:
            numbers = pattern(one.dtype)
            self._patterns[one.dtype] = self.copy_there(numbers.view(np.uint8)), numbers.nbytes
        source, length = self._patterns[one.dtype]
        size = int(np.prod(one.shape)) * pattern(one.dtype).itemsize
        place = self.allocate(size)
        for offset in range(0, size, length):
            target = ctypes.c_uint64(place.value + offset)
            self._call("cuMemcpyDtoD_v2", target, source, ctypes.c_size_t(min(length, size - offset)))
        return place

    # --- Calls ----------------------------------------------------------------------------------------------------

    def function(self, cubin: bytes, entry: str) -> ctypes.c_void_p:
        """A kernel; its module stays."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), cubin)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def launching(
        self, function: ctypes.c_void_p, arguments: Sequence[Any], grid: Extents, block: Extents, shared: int = 0
    ) -> Callable[[], None]:
        """What puts a launch into the stream."""
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(one) for one in arguments))
        if shared:
            self._call("cuFuncSetAttribute", function, _MOST_DYNAMIC_SHARED, shared)

        def enqueue(_kept: Sequence[Any] = arguments) -> None:
            self._call("cuLaunchKernel", function, *grid, *block, shared, self._stream, pointers, None)

        return enqueue

    @contextmanager
    def prepared(self, plan: Plan, inputs: Sequence[Array], cubin_of: Callable[[str], bytes]) -> Generator[Call]:
        """A plan's launches over memory of the device, which the block has; `cubin_of` has a program's by its text.

        Raises:
            DriverError: for anything else than launches and memory, and where the driver says no.
        """
        places: dict[Storage, ctypes.c_uint64] = {}
        entries, told = list[Callable[[], None]](), list[dict[str, Any]]()
        try:
            for handle, one in zip(plan.inputs, inputs, strict=True):
                places[handle.storage] = self._filled(one)
            for node in plan.nodes:
                match node:
                    case Allocate(storage):
                        places[storage] = self.zeros(storage.size)
                    case Constant(storage, data):
                        places[storage] = self.copy_there(np.frombuffer(data, np.uint8))
                    case Launch() if node.cluster == (1, 1, 1) and not node.cooperative:
                        entry, facts = self._launch(node, cubin_of(plan.programs[node.program].text), places)
                        entries.append(entry)
                        told.append(facts)
                    case _:
                        raise DriverError(f"{type(node).__name__}: only launches without clusters are timed")
            self._call("cuCtxSynchronize")
            yield Call(entries, told)
            self._call("cuStreamSynchronize", self._stream)
        finally:
            self.free(*places.values())

    def _launch(self, node: Launch, cubin: bytes, places: Places) -> tuple[Callable[[], None], dict[str, Any]]:
        function = self.function(cubin, node.entry)
        arguments = [argument_of(self, one, places) for one in node.arguments]
        entry = self.launching(function, arguments, node.grid, node.block, node.shared_bytes)
        facts: dict[str, Any] = {
            "kernel": node.entry, "grid": node.grid, "block": node.block, "dynamic_shared_bytes": node.shared_bytes
        }  # fmt: skip
        number = ctypes.c_int()
        for name, attribute in _ATTRIBUTES.items():
            self._call("cuFuncGetAttribute", ctypes.byref(number), attribute, function)
            facts[name] = number.value
        threads = int(np.prod(node.block))
        size = ctypes.c_size_t(node.shared_bytes)
        self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(number), function, threads, size)
        return entry, facts | {"blocks_per_multiprocessor": number.value}

    def helpers(self, cubin: bytes) -> Mapping[str, Call]:
        """The calls of HELPERS; from now on cold calls have another L2. A cubin with kernels `empty` and `read`."""
        empty, read = self.function(cubin, "empty"), self.function(cubin, "read")
        source, target, word = self.zeros(_COPIED), self.zeros(_COPIED), self.zeros(16)

        def reading(size: int, rounds: int) -> Callable[[], None]:
            numbers = [source, word, ctypes.c_uint64(size // 16), ctypes.c_uint32(rounds)]
            return self.launching(read, numbers, (_BLOCKS, 1, 1), (_THREADS, 1, 1))

        def copy() -> None:
            self._call("cuMemcpyDtoDAsync_v2", target, source, ctypes.c_size_t(_COPIED), self._stream)

        def fill() -> None:
            self._call("cuMemsetD32Async", target, 0, ctypes.c_size_t(_COPIED // 4), self._stream)

        one, many = (self.launching(empty, [], (blocks, 1, 1), (128, 1, 1)) for blocks in (1, 2112))
        flushed, self._flush = reading(FLUSH_BYTES, 1), reading(FLUSH_BYTES, 1)
        for _ in range(5000):  # half a second of work, so that the clocks are those of work
            flushed()
        self._call("cuStreamSynchronize", self._stream)
        calls: Sequence[Sequence[Callable[[], None]]]
        calls = ([], [one], [many], [reading(_COPIED, 1)], [copy], [fill], [reading(16 << 20, _ROUNDS)])
        return {name: Call(entries) for name, entries in zip(HELPERS, calls, strict=True)}


def _open_telling() -> Callable[[], dict[str, int]] | None:
    """What asks the first device for its state; None where the driver's library for that is not there."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    handle = ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
        return None
    asked = {
        "sm_mhz": (library.nvmlDeviceGetClockInfo, 1), "memory_mhz": (library.nvmlDeviceGetClockInfo, 2),
        "celsius": (library.nvmlDeviceGetTemperature, 0), "milliwatts": (library.nvmlDeviceGetPowerUsage,),
    }  # fmt: skip

    def tell() -> dict[str, int]:
        found: dict[str, int] = {}
        for name, (function, *which) in asked.items():
            number = ctypes.c_uint()
            if not function(handle, *which, ctypes.byref(number)):
                found[name] = number.value
        return found

    return tell
