"""The driver that Triton's discovery finds: an empty shell until `triptych.languages.triton.activate()` fills it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import triton.backends.driver as triton_driver


class Behaviour(Protocol):
    """What fills the shell: every question that Triton 3.6 to 3.9 asks a driver (`driver.SimulatedDriver`)."""

    @property
    def utils(self) -> object:
        """Device properties and the loading of binaries."""
        ...

    @property
    def launcher_cls(self) -> Callable[..., object]:
        """Called with (source, metadata) for each compiled kernel; the result is called for each launch."""
        ...

    def current_device(self) -> int:
        """The ordinal of the device in force."""
        ...

    def current_target(self) -> object:
        """Triton's `GPUTarget` of the device in force."""
        ...

    def capability(self) -> tuple[int, int]:
        """The compute capability compiled for."""
        ...

    def cpp_type(self, ty: str) -> str:
        """The C++ type of a Triton type, for Triton's ahead-of-time tool."""
        ...

    def torch_device(self) -> object:
        """Where torch tensors live: the simulated device."""
        ...

    def device_interface(self) -> object:
        """Events and synchronisation, in the shape of `torch.cuda`."""
        ...

    def benchmarker(self) -> Callable[..., Sequence[float]]:
        """What the autotuner times with."""
        ...

    def refuse_benchmark_cache(self) -> object:
        """Called by a `do_bench` that was imported before the activation."""
        ...


_behaviour: Behaviour | None = None


def fill(behaviour: Behaviour | None) -> None:
    """Makes the driver active with this behaviour, or inactive with `None`."""
    global _behaviour
    _behaviour = behaviour


class TriptychDriver(triton_driver.DriverBase):
    """Answers Triton's questions from the behaviour in force; active between `activate()` and `deactivate()` only."""

    def __init__(self) -> None:
        """A driver over the behaviour in force when it is made."""
        super().__init__()
        if _behaviour is None:
            raise RuntimeError("triptych's Triton driver is not active: call triptych.languages.triton.activate()")
        self._behaviour = _behaviour
        self.utils = _behaviour.utils
        self.launcher_cls = _behaviour.launcher_cls

    @classmethod
    def is_active(cls) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  Triton's has no annotation
        """Whether `activate()` was called (and `deactivate()` not yet)."""
        return _behaviour is not None

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Triton's own CUDA answer (its ahead-of-time tool asks; launches here go through no C++ stub)."""
        return self._behaviour.cpp_type(ty)

    def get_current_device(self) -> int:
        """The ordinal of the device in force; each pair of chip and target has its own."""
        return self._behaviour.current_device()

    def set_current_device(self, device: int) -> None:
        """Nothing: the chip and the target in force decide."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default stream: launches run in order, each to its end."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability compiled for."""
        return self._behaviour.capability()

    def get_current_target(self) -> Any:  # noqa: ANN401  Triton's GPUTarget
        """Triton's `GPUTarget("cuda", …)` of the target in force."""
        return self._behaviour.current_target()

    def get_active_torch_device(self) -> Any:  # noqa: ANN401  torch.device
        """`torch.device("cuda", 0)`, the simulated device."""
        return self._behaviour.torch_device()

    def get_device_interface(self) -> object:
        """Events on the modelled clock."""
        return self._behaviour.device_interface()

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """One run on the modelled clock."""
        return self._behaviour.benchmarker()

    def get_empty_cache_for_benchmark(self) -> object:
        """Only a `do_bench` from before the activation asks; see `benchmark.refuse_stale_do_bench`."""
        return self._behaviour.refuse_benchmark_cache()

    def clear_cache(self, cache: object) -> None:
        """Nothing: the machine has no cache that outlives a launch."""
