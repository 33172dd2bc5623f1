"""The torch function mode: every function and method of torch that a script calls goes through it first."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from torch.overrides import TorchFunctionMode

from triptych.languages.triton.torch_cuda.rules import RULES, ordinary

_overrides: Any = import_module("torch.overrides")


class CudaMode(TorchFunctionMode):
    """Tensors on `cuda` are tensors of the host's memory that say so. In force in the thread that entered it.

    Inside of a function of torch no mode is in force, so torch itself sees nothing but tensors on the CPU.
    """

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What `func` gives, by its rule."""
        rule = RULES.get(func)
        return ordinary(func, args, kwargs or {}) if rule is None else rule(func, args, kwargs or {})


def enter() -> CudaMode:
    """The mode comes into force in this thread, until `leave`."""
    mode = CudaMode()
    _overrides._push_mode(mode)
    return mode


def leave(mode: CudaMode) -> None:
    """The mode is no longer in force, wherever it lies among the modes of this thread; others stay."""
    above: list[Any] = []
    while _overrides._len_torch_function_stack():
        top = _overrides._pop_mode()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        _overrides._push_mode(other)


@contextmanager
def in_force() -> Generator[None]:
    """The mode is in force inside the `with` block, also where torch has called back into Python."""
    if any(isinstance(mode, CudaMode) for mode in _overrides._get_current_function_mode_stack()):
        yield
        return
    mode = enter()
    try:
        yield
    finally:
        leave(mode)
