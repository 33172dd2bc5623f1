"""torch's CUDA device, simulated for programs that import torch, and for no others."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from triptych.core.handles import Handle
from triptych.languages.after_import import AfterImport
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.internals import interprets


@contextmanager
def captured_tensors() -> Generator[Callable[[Handle], Any]]:
    """In the block tensors on `cuda` are those of a recording; what makes one that stands for an array of the plan.

    torch is imported, and the driver must be active.
    """
    import_module("torch")
    home = import_module(f"{__package__}.torch_cuda.capture.mode")
    with home.capturing():
        yield home.tensor_of


class TorchSupport:
    """The simulated device, from the moment on at which the program imports torch, until `remove()`.

    Not where Triton interprets kernels by itself: it wants tensors of the host.
    """

    def __init__(self, clock: Clock) -> None:
        """Events are on `clock`."""
        self._clock = clock
        self._installed: Any = None
        self._import = AfterImport("torch", self._install)
        if not interprets():
            self._import.watch()

    def _install(self) -> None:
        home = import_module(f"{__package__}.torch_cuda.install")  # it imports torch, which may not be there
        self._installed = home.TorchCuda(self._clock)

    def remove(self) -> None:
        """Leaves torch as it was found."""
        self._import.leave()
        if self._installed is not None:
            self._installed.remove()
