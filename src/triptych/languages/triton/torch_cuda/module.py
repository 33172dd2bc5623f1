"""What stands in `torch.cuda` while the device is simulated: a table of its functions."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from triptych.core.errors import UnsupportedFeature
from triptych.core.gpu_facts import WARP_SIZE
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.devices import Device, device_in_force
from triptych.languages.triton.torch_cuda.generators import DeviceGenerator
from triptych.languages.triton.torch_cuda.marks import DEVICE, usage
from triptych.languages.triton.torch_cuda.rules import checked
from triptych.languages.triton.torch_cuda.streams import Stream, event_class

torch: Any = import_module("torch")
_index_of: Any = import_module("torch.cuda._utils")._get_device_index
_generator = DeviceGenerator(torch.default_generator)
"""The device draws from the host's default generator."""

SHARED_BYTES_BY_DEFAULT = 48 << 10
"""What a block may use of shared memory without opting in: CUDA C++ Programming Guide, technical specifications."""


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What `torch.cuda.get_device_properties` gives: the chip in force. Sizes in bytes, the clock in kHz."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    clock_rate: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    warp_size: int = WARP_SIZE
    is_integrated: int = 0
    is_multi_gpu_board: int = 0

    @classmethod
    def of(cls, device: Device) -> DeviceProperties:
        """The properties of a device."""
        chip, (major, minor) = device.chip, device.capability
        return cls(
            name=chip.title,
            major=major,
            minor=minor,
            total_memory=chip.dram_bytes,
            multi_processor_count=chip.sm_count,
            clock_rate=round(chip.clock_hz / 1e3),
            max_threads_per_block=chip.max_threads_per_block,
            max_threads_per_multi_processor=chip.max_warps_per_sm * WARP_SIZE,
            regs_per_multiprocessor=chip.registers_per_sm,
            shared_memory_per_block=SHARED_BYTES_BY_DEFAULT,
            shared_memory_per_block_optin=chip.shared_bytes_per_block_max,
            shared_memory_per_multiprocessor=chip.shared_bytes_per_sm,
            L2_cache_size=chip.l2_bytes,
        )


def _properties(device: object = None) -> DeviceProperties:
    _check(device)
    return DeviceProperties.of(device_in_force())


def _capability(device: object = None) -> tuple[int, int]:
    _check(device)
    return device_in_force().capability


def _check(device: object) -> None:
    """What torch takes for a device here: what names none is the current one."""
    if device is not None:
        checked(_index_of(device, optional=True))


def _of_device(answer: Callable[[], Any]) -> Callable[..., Any]:
    """A function of a device that answers for the only one."""

    def function(device: object = None, *_others: object, **_options: object) -> Any:
        _check(device)
        return answer()

    return function


def _constant(value: object) -> Callable[..., Any]:
    """A function that always answers the same, or does nothing."""

    def function(*_arguments: object, **_options: object) -> object:
        return value

    return function


def _unsupported(what: str) -> type:
    """A class, which annotations may name, of which there is no instance; or a function that cannot be called."""

    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        raise UnsupportedFeature(f"{what} cannot be simulated", hint="launch the kernels themselves")

    return type(what.rpartition(".")[2], (), {"__init__": refuse})


class StreamContext:
    """`torch.cuda.stream(…)`: nothing changes, all streams are one."""

    def __init__(self, stream: object) -> None:
        """For a stream, or None."""

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, *_error: object) -> None:
        """Nothing changes."""


class DeviceContext:
    """`torch.cuda.device(…)` and `device_of(…)`: nothing changes, there is one device."""

    def __init__(self, device: object = None) -> None:
        """For a device, which must be the only one."""
        if not isinstance(device, torch.Tensor):
            _check(device)
        self.idx = DEVICE.index

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, *_error: object) -> None:
        """Nothing changes."""


@contextmanager
def _range(message: str, *_arguments: object, **_options: object) -> Generator[None]:
    yield


def _set_state(state: Any, device: object = None) -> None:
    _check(device)
    _generator.set_state(state)


def _set_state_of_each(states: Sequence[Any]) -> None:
    _set_state(states[0])


def _manual_seed(seed: int) -> None:
    _generator.manual_seed(seed)


def _free_and_total(device: object = None) -> tuple[int, int]:
    _check(device)
    total = device_in_force().chip.dram_bytes
    return total - usage.allocated, total


def _memory_stats(device: object = None) -> dict[str, int]:
    _check(device)
    figures = {"current": usage.allocated, "peak": usage.peak}
    kinds = ("allocated_bytes", "reserved_bytes", "active_bytes")
    return {f"{kind}.all.{when}": size for kind in kinds for when, size in figures.items()}


def functions(clock: Clock) -> Mapping[str, object]:
    """What stands in `torch.cuda`, by name; events on `clock`."""
    stream = Stream()
    allocated, peak = _of_device(lambda: usage.allocated), _of_device(lambda: usage.peak)
    table: dict[str, object] = {
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "init": _constant(None),
        "_lazy_init": _constant(None),
        "device_count": _constant(1),
        "current_device": _constant(DEVICE.index),
        "set_device": _of_device(lambda: None),
        "device": DeviceContext,
        "device_of": DeviceContext,
        "get_device_name": _of_device(lambda: device_in_force().chip.title),
        "get_device_capability": _capability,
        "get_device_properties": _properties,
        "get_arch_list": lambda: [f"sm_{device_in_force().architecture}"],
        "is_bf16_supported": lambda including_emulation=True: device_in_force().architecture >= 80,
        "is_tf32_supported": lambda: device_in_force().architecture >= 80,
        "synchronize": _of_device(lambda: None),
        "ipc_collect": _constant(None),
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": event_class(clock),
        "stream": StreamContext,
        "StreamContext": StreamContext,
        "set_stream": _constant(None),
        "current_stream": _of_device(lambda: stream),
        "default_stream": _of_device(lambda: stream),
        "is_current_stream_capturing": _constant(False),
        "CUDAGraph": _unsupported("torch.cuda.CUDAGraph"),
        "graph": _unsupported("torch.cuda.graph"),
        "make_graphed_callables": _unsupported("torch.cuda.make_graphed_callables"),
        "manual_seed": _manual_seed,
        "manual_seed_all": _manual_seed,
        "seed": _generator.seed,
        "seed_all": _generator.seed,
        "initial_seed": _generator.initial_seed,
        "get_rng_state": _of_device(_generator.get_state),
        "get_rng_state_all": lambda: [_generator.get_state()],
        "set_rng_state": _set_state,
        "set_rng_state_all": _set_state_of_each,
        "default_generators": (_generator,),
        "empty_cache": _constant(None),
        "memory_allocated": allocated,
        "max_memory_allocated": peak,
        "memory_reserved": allocated,
        "max_memory_reserved": peak,
        "reset_peak_memory_stats": _of_device(usage.reset),
        "reset_max_memory_allocated": _of_device(usage.reset),
        "reset_accumulated_memory_stats": _constant(None),
        "memory_stats": _memory_stats,
        "mem_get_info": _free_and_total,
    }
    return table


def nvtx_functions() -> Mapping[str, object]:
    """What stands in `torch.cuda.nvtx`: ranges that nothing records."""
    return {"range": _range, "range_push": _constant(0), "range_pop": _constant(0), "mark": _constant(None)}


def accelerator_functions(cuda: Mapping[str, object]) -> Mapping[str, object]:
    """What stands in `torch.accelerator`, with what `cuda`, the table of `torch.cuda`, has."""
    index = cuda["current_device"]
    same = (
        "is_available", "device_count", "synchronize", "current_stream", "set_stream", "empty_cache",
        "get_device_capability", "memory_allocated", "max_memory_allocated", "memory_reserved",
        "max_memory_reserved", "memory_stats", "reset_peak_memory_stats", "reset_accumulated_memory_stats",
    )  # fmt: skip
    table = {
        **{name: cuda[name] for name in same},
        "current_accelerator": _constant(torch.device("cuda")),
        "current_device_index": index,
        "current_device_idx": index,
        "set_device_index": cuda["set_device"],
        "set_device_idx": cuda["set_device"],
        "get_memory_info": cuda["mem_get_info"],
    }
    return {name: ours for name, ours in table.items() if hasattr(torch.accelerator, name)}
