"""The torch function mode of a capture: what goes to the device, and what would need values."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from torch.overrides import TorchFunctionMode

from triptych.core.errors import ValueTouched
from triptych.execution.call_site import call_site
from triptych.execution.capture.arrays import WHY
from triptych.languages.triton.torch_cuda.capture.operators import CapturedOperators
from triptych.languages.triton.torch_cuda.capture.tensors import (
    META,
    handle_of,
    is_captured,
    label,
    needs_values,
    on_device,
    tensor_of,
    upload,
)
from triptych.languages.triton.torch_cuda.marks import DEVICE, is_cuda, tensors_in
from triptych.languages.triton.torch_cuda.rules import checked

torch: Any = import_module("torch")
_device_module: Any = import_module("torch.utils._device")
_pytree: Any = import_module("torch.utils._pytree")
_constructors: Any = _device_module._device_constructors()

_MADE_WITHOUT_DATA = frozenset({
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.zeros, torch.zeros_like,
    torch.ones, torch.ones_like, torch.full, torch.full_like,
})  # fmt: skip
"""Constructors of allocations and fills; what others make is data of the host."""

__all__ = ["CaptureMode", "capturing", "tensor_of"]

Rule = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class CaptureMode(TorchFunctionMode):
    """In force in the thread that captures, above the simulated device's own mode."""

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What `func` gives, by its rule."""
        return RULES.get(func, _ordinary)(func, args, dict(kwargs or {}))


@contextmanager
def capturing() -> Generator[None]:
    """Tensors on `cuda` have no data in the block."""
    with CaptureMode():
        yield


def _ordinary(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    arguments, keywords = _pytree.tree_map(on_device, (arguments, keywords))
    captured = any(map(is_captured, tensors_in((arguments, keywords))))
    asked = keywords.get("device")
    if asked is None and function in _constructors and is_cuda(_device_module.CURRENT_DEVICE or "cpu"):
        asked = DEVICE
    to_device = captured if asked is None else is_cuda(asked)
    if not to_device and not captured:
        return function(*arguments, **keywords)
    if to_device and not captured and function not in _MADE_WITHOUT_DATA:
        return upload(function(*arguments, **_on_host(keywords)))
    if asked is not None:
        if not to_device:
            raise needs_values(next(filter(is_captured, tensors_in((arguments, keywords)))), "a copy on the host")
        checked(asked)
        keywords["device"] = META
    keywords.pop("pin_memory", None)
    return _on_device(function, arguments, keywords)


def _on_device(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    try:
        with CapturedOperators():
            return function(*arguments, **keywords)
    except NotImplementedError as error:
        raise ValueTouched(
            f"torch's {getattr(function, '__name__', function)} needs values for the shape of its result; {WHY}",
            where=call_site(),
            hint="launch a kernel that computes it",
        ) from error


def _on_host(keywords: dict[str, Any]) -> dict[str, Any]:
    """The same on the CPU, where data is made that then goes to the device."""
    host = {name: value for name, value in keywords.items() if name not in ("device", "pin_memory")}
    if keywords.get("device") is not None:
        host["device"] = checked(keywords["device"])
    return host


def _if_captured(answer: Callable[[Any], Any]) -> Rule:
    """A rule for functions of one captured tensor; those of others are as they were."""

    def rule(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        first = arguments[0]
        return answer(first) if is_captured(first) else function(*arguments, **keywords)

    return rule


def _refusing(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What gives values to the host."""
    for one in tensors_in((arguments, keywords)):
        if is_captured(one):
            raise needs_values(one, f"'{getattr(function, '__name__', function)}'")
    return function(*arguments, **keywords)


def _plain(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    return function(*arguments, **keywords)


def _to(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`Tensor.to`, by device, type or another tensor."""
    tensor, *rest = arguments
    named: Any = rest[0] if rest else keywords.get("device", keywords.get("other"))
    if isinstance(named, torch.Tensor):
        to_device, dtype = is_captured(named), named.dtype
    else:
        dtypes = [one for one in (*rest, keywords.get("dtype")) if isinstance(one, torch.dtype)]
        dtype = dtypes[0] if dtypes else tensor.dtype
        said = named is not None and not isinstance(named, torch.dtype)
        to_device = is_cuda(named) if said else is_captured(tensor)
        if said and to_device:
            checked(named)
    if not is_captured(tensor):
        if not to_device:
            return function(*arguments, **keywords)
        return upload(tensor.to(dtype))
    if not to_device:
        raise needs_values(tensor, "a copy on the host")
    copy = bool(keywords.get("copy"))
    return _on_device(torch.Tensor.to, (tensor, dtype), {"copy": True} if copy else {})


def _cuda(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    tensor, *rest = arguments
    checked(next(iter(rest), keywords.get("device")) or 0)
    return tensor if is_captured(tensor) else upload(tensor)


def _shown(tensor: Any) -> str:
    return f"<captured tensor {label(tensor)}, device='{DEVICE}'>"


def _formatted(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    tensor = arguments[0]
    if not is_captured(tensor):
        return function(*arguments, **keywords)
    if not tensor.dim():
        raise needs_values(tensor, "to print a number")
    return _shown(tensor)


def _table() -> dict[Any, Rule]:
    tensor = torch.Tensor
    plain = [getattr(tensor, name).__get__ for name in ("shape", "dtype", "layout", "ndim", "requires_grad", "grad_fn")]
    plain += [getattr(tensor, name) for name in ("size", "stride", "numel", "dim", "element_size", "is_contiguous")]
    values = [
        getattr(tensor, name)
        for name in (
            "item", "tolist", "numpy", "__array__", "cpu", "__bool__", "__int__", "__float__", "__index__",
            "__complex__", "__contains__", "equal", "allclose", "nonzero", "unique", "is_nonzero",
        )
    ]  # fmt: skip
    values += [torch.equal, torch.allclose, torch.is_nonzero, torch.nonzero, torch.unique]
    return {
        **dict.fromkeys(plain, _plain),
        **dict.fromkeys(values, _refusing),
        tensor.device.__get__: _if_captured(lambda _: DEVICE),
        tensor.is_cuda.__get__: _if_captured(lambda _: True),
        tensor.is_cpu.__get__: _if_captured(lambda _: False),
        tensor.is_meta.__get__: _if_captured(lambda _: False),
        tensor.get_device: _if_captured(lambda _: DEVICE.index),
        tensor.data_ptr: _if_captured(lambda one: handle_of(one).data_ptr()),
        tensor.to: _to,
        tensor.cuda: _cuda,
        tensor.pin_memory: _if_captured(lambda one: one),
        tensor.__repr__: _if_captured(_shown),
        tensor.__format__: _formatted,
    }


RULES: Mapping[Any, Rule] = _table()
