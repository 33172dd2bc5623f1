"""What torch's own operators are in a plan: allocations, views, fills and copies; all others are library work."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from triptych.languages.triton.torch_cuda.capture.tensors import (
    META,
    attach,
    handle_of,
    is_captured,
    needs_values,
    recorder,
)
from triptych.languages.triton.torch_cuda.marks import tensors_in

torch: Any = import_module("torch")
_aten: Any = torch.ops.aten

_ALLOCATIONS = frozenset({
    _aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty, _aten.new_empty_strided, _aten.empty_permuted,
})  # fmt: skip
_CONSTANTS: Mapping[Any, int] = {
    _aten.zeros: 0, _aten.zeros_like: 0, _aten.new_zeros: 0, _aten.ones: 1, _aten.ones_like: 1, _aten.new_ones: 1,
}  # fmt: skip
"""Allocations that are filled, with what."""
_VALUE_AT: Mapping[Any, int] = {_aten.full: 1, _aten.full_like: 1, _aten.new_full: 2, _aten.scalar_tensor: 0}
"""Those whose argument says it: which."""


class CapturedOperators(TorchDispatchMode):
    """Sees each operator of torch that runs in it, on tensors without data."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What torch says of the result's shape; what it would compute is noted."""
        kwargs = kwargs or {}
        if func.overloadpacket is _aten._local_scalar_dense and is_captured(args[0]):
            raise needs_values(args[0], "a number of the host")
        old = {id(one.untyped_storage()) for one in tensors_in((args, list(kwargs.values())))}
        result = func(*args, **kwargs)
        fresh = [one for one in tensors_in(result) if one.device == META and id(one.untyped_storage()) not in old]
        _note(func, args, kwargs, result, fresh)
        return result


def _note(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, fresh: list[Any]) -> None:
    packet = func.overloadpacket
    if packet in _ALLOCATIONS:
        attach(result)
    elif packet in _CONSTANTS or packet in _VALUE_AT:
        value = _CONSTANTS[packet] if packet in _CONSTANTS else args[_VALUE_AT[packet]]
        attach(result)
        recorder().fill(handle_of(result), _number(value))
    elif packet is _aten.zero_:
        recorder().fill(handle_of(args[0]), 0)
    elif packet is _aten.fill_ and not isinstance(args[1], torch.Tensor):
        recorder().fill(handle_of(args[0]), _number(args[1]))
    elif packet is _aten.copy_ and is_captured(args[0]) and _is_copy(args[0], args[1]):
        recorder().copy(handle_of(args[0]), args[1])
    elif packet in (_aten.clone, _aten._to_copy) and is_captured(args[0]) and args[0].dtype == result.dtype:
        attach(result)
        recorder().copy(handle_of(result), args[0])
    elif fresh or func._schema.is_mutable:
        _note_library_work(packet, args, kwargs, fresh)


def _note_library_work(packet: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], fresh: list[Any]) -> None:
    name = f"torch.{packet.__name__.removeprefix('_')}"
    for one in fresh:
        recorder().note_library_work(name, attach(one))
    if not fresh and any(map(is_captured, tensors_in((args, list(kwargs.values()))))):
        recorder().note_library_work(name, None)


def _is_copy(target: Any, source: Any) -> bool:
    """Whether it is no conversion: data of the host is converted there."""
    return not is_captured(source) or source.dtype == target.dtype


def _number(value: Any) -> float:
    return int(value) if isinstance(value, bool) else value
