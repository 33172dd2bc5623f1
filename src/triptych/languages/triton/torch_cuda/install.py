"""Switching the simulated device on and off: everything that changes in torch, and how it is put back."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Thread
from typing import Any

from triptych.languages.triton.clock import Clock
from triptych.languages.triton.internals import libraries
from triptych.languages.triton.replacement import Replacement
from triptych.languages.triton.torch_cuda.cublas import CublasLt
from triptych.languages.triton.torch_cuda.generators import DeviceGenerator
from triptych.languages.triton.torch_cuda.marks import is_cuda, is_marked, mark_new, tensors_in
from triptych.languages.triton.torch_cuda.mode import enter, in_force, leave
from triptych.languages.triton.torch_cuda.module import accelerator_functions, functions, nvtx_functions
from triptych.languages.triton.torch_cuda.rules import checked

torch: Any = import_module("torch")
_function: Any = import_module("torch.autograd.function")
_cuda: Any = import_module("torch.cuda")


class TorchCuda:
    """The simulated device in place of torch's own, until `remove()`."""

    def __init__(self, clock: Clock) -> None:
        """Installs it. Events are on `clock`."""
        cuda = functions(clock)
        self._replacements = [
            *_all_of(_cuda, cuda),
            *_all_of(torch.accelerator, accelerator_functions(cuda)),
            *_all_of(_cuda.nvtx, nvtx_functions()),
            Replacement.apply(torch, "Generator", _generator_class),
            Replacement.apply(_function.BackwardCFunction, "apply", _make_apply),
            Replacement.apply(torch.autocast, "__init__", _make_autocast),
            Replacement.apply(torch.Tensor, "record_stream", lambda _: _record_stream),
            Replacement.apply(Thread, "start", _make_start),
            Replacement.apply(libraries.cublas, "CublasLt", lambda _: CublasLt),
        ]
        self._mode = enter()

    def remove(self) -> None:
        """Leaves torch as it was found; tensors that say `cuda:0` say `cpu` from now on."""
        leave(self._mode)
        for replacement in reversed(self._replacements):
            replacement.undo()


def _all_of(owner: object, table: Mapping[str, object]) -> list[Replacement]:
    return [Replacement.apply(owner, name, lambda _, ours=ours: ours) for name, ours in table.items()]


def _make_apply(apply: Callable[..., Any]) -> Callable[..., Any]:
    """A custom function's backward, as autograd calls it: in the mode, and with gradients that say where they are.

    Autograd calls it from inside a function of torch, where no mode is in force, with gradients that it has made by
    itself. They lie on the device where what the forward pass kept for it does.
    """

    def run_backward(self: Any, *gradients: Any) -> Any:
        if any(map(is_marked, tensors_in(self.saved_tensors))):
            mark_new(gradients, ())
        with in_force():
            return apply(self, *gradients)

    return run_backward


def _make_autocast(initialise: Callable[..., None]) -> Callable[..., None]:
    """`torch.autocast("cuda", …)`, which takes hold of operators that run on the CPU, with the device's own type."""

    def initialise_for_host(self: Any, device_type: str, dtype: Any = None, *others: Any, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        initialise(self, device_type, dtype, *others, **options)

    return initialise_for_host


def _record_stream(tensor: Any, stream: object) -> None:
    """Nothing: the streams are one. (torch looks at the stream before it asks any mode.)"""


def _make_start(start: Callable[[Thread], None]) -> Callable[[Thread], None]:
    """`Thread.start` of a thread that runs in the mode."""

    def start_in_mode(self: Thread) -> None:
        run = self.run

        def run_in_mode() -> None:
            del self.run
            with in_force():
                run()

        self.run = run_in_mode
        start(self)

    return start_in_mode


def _generator_class(original: Any) -> Any:
    """`torch.Generator`, of which one for the device is a `DeviceGenerator`."""

    def new(_: object, device: object = "cpu") -> Any:
        return DeviceGenerator(original(checked(device))) if is_cuda(device) else original(device)

    def is_instance(_: object, value: object) -> bool:
        return isinstance(value, original)

    kind: Any = type("GeneratorKind", (original.__class__,), {"__instancecheck__": is_instance})
    return kind("Generator", (original,), {"__new__": new})
