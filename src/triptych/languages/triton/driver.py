"""What fills the driver's shell in `backend.driver`: triptych's answers to Triton's questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from triptych.languages.triton.benchmark import DeviceInterface, make_benchmarker, refuse_stale_do_bench
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.devices import Device, device_in_force, ordinals
from triptych.languages.triton.internals import GpuTarget, Metadata, Source, cpp_type, interprets
from triptych.languages.triton.loading import Function, SimulatedLauncher, load_function
from triptych.languages.triton.registers import Figure
from triptych.languages.triton.repeats import Repeats


class Utilities:
    """Triton's `driver.utils`: properties of the device in force, and the loading of compiled kernels."""

    def __init__(self, device: Callable[[], Device]) -> None:
        """`device` gives the device in force."""
        self._device = device

    def get_device_properties(self, device: object = None) -> dict[str, int]:
        """The chip in force; see `devices.Device.properties`."""
        return self._device().properties()

    def load_binary(
        self, name: str, binary: bytes | str, shared_bytes: int, device: object
    ) -> tuple[None, Function, Figure, Figure, int]:
        """(module, function, registers of a thread, spills, most threads of a block).

        There is no module: one would be unloaded, when Triton drops the kernel, by whatever driver is active then. That
        Triton does not load such a kernel for each launch again is `loading.make_loading`'s.
        """
        function = load_function(name, binary, shared_bytes)
        return None, function, Figure.REGISTERS, Figure.SPILLS, self._device().chip.max_threads_per_block

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing: printf is bounded by the machine."""


class SimulatedDriver:
    """Chip and target as they are in force, a modelled clock, and launches on triptych's machine.

    There is one in a process, since kernels that Triton keeps hold on to it over deactivations.
    """

    def __init__(self) -> None:
        """At time zero."""
        self.clock = Clock()
        self.repeats = Repeats(self.clock)
        self.utils = Utilities(self.device)

    def device(self) -> Device:
        """The device in force."""
        return device_in_force()

    def launcher_cls(self, source: Source, metadata: Metadata) -> SimulatedLauncher:
        """The launcher of one compiled kernel. All that runs launches is imported now, not with the activation."""
        return import_module(f"{__package__}.launcher").Launcher(source, metadata, self.clock, self.repeats)

    def current_device(self) -> int:
        """The ordinal of the device in force."""
        return ordinals.of(self.device())

    def current_target(self) -> GpuTarget:
        """Triton's target of the device in force."""
        return self.device().target

    def capability(self) -> tuple[int, int]:
        """The compute capability compiled for."""
        return self.device().capability

    def cpp_type(self, ty: str) -> str:
        """Triton's own CUDA answer."""
        return cpp_type(ty)

    def torch_device(self) -> Any:  # noqa: ANN401  torch.device
        """The simulated device, `cuda:0`; the CPU for Triton's own interpreter."""
        import torch  # noqa: PLC0415  optional and heavy: only asked for by programs that use torch themselves

        return torch.device("cpu") if interprets() else torch.device("cuda", 0)

    def device_interface(self) -> DeviceInterface:
        """Events on the modelled clock."""
        return DeviceInterface(self.clock, self.current_device)

    def benchmarker(self) -> Callable[..., Sequence[float]]:
        """One run on the modelled clock."""
        return make_benchmarker(self.clock)

    def refuse_benchmark_cache(self) -> NoReturn:
        """Stops a `do_bench` from before the activation."""
        refuse_stale_do_bench()


simulated_driver = SimulatedDriver()
"""The one of this process."""
