"""What the mode answers: a rule for each function of torch that tells devices apart; all others are `ordinary`."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from triptych.core.errors import UsageError
from triptych.execution.memory import memory
from triptych.languages.triton.torch_cuda.generators import DeviceGenerator
from triptych.languages.triton.torch_cuda.marks import DEVICE, HOST, is_cuda, is_marked, mark, mark_new, tensors_in
from triptych.languages.triton.torch_cuda.operators import operators_of

torch: Any = import_module("torch")
_device_module: Any = import_module("torch.utils._device")
_constructors: Any = _device_module._device_constructors()
"""Functions that a default device (`torch.set_default_device`, `with torch.device(…)`) applies to."""

Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]
Rule = Callable[[Any, Arguments, Keywords], Any]
"""(function, arguments, keywords) -> what the script gets. No mode is in force meanwhile."""


def ordinary(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """On the CPU; the result is on the device where it is asked for there, or else where an argument is there."""
    inputs = [*tensors_in(arguments), *tensors_in(keywords)] if keywords else [*tensors_in(arguments)]
    asked = keywords.get("device")
    if asked is None and function in _constructors and is_cuda(_device_module.CURRENT_DEVICE):
        asked = DEVICE
    if asked is None:
        on_device = any(map(is_marked, inputs))
    elif on_device := is_cuda(asked):
        keywords = {**keywords, "device": checked(asked)}
    if isinstance(keywords.get("generator"), DeviceGenerator):
        keywords = {**keywords, "generator": keywords["generator"].host}
    if keywords.get("pin_memory"):  # nothing is to be gained by it
        keywords = {**keywords, "pin_memory": False}
    if not on_device:
        return function(*arguments, **keywords)
    with operators_of(function):
        result = function(*arguments, **keywords)
    mark_new(result, inputs)
    return result


def checked(device: object) -> Any:
    """The device of the host that stands for `device`.

    Raises:
        UsageError: for any but the first of several.
    """
    index = device if isinstance(device, int) else torch.device(device).index
    if index:
        raise UsageError(f"device 'cuda:{index}': there is one simulated GPU, cuda:0")
    return HOST


def _plain(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """Nothing to do with devices."""
    return function(*arguments, **keywords)


def _of_device(answer: object) -> Rule:
    """A property that has this value on the device."""

    def rule(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
        return answer if is_marked(arguments[0]) else function(*arguments, **keywords)

    return rule


def _data_ptr(function: Any, arguments: Arguments, keywords: Keywords) -> int:
    """The device address."""
    (tensor,) = arguments
    return memory().bind(tensor).data_ptr() if is_marked(tensor) else function(tensor)


def _moved(tensor: Any, result: Any, *, to_device: bool) -> Any:
    """`result`, which came of `tensor`, on the device or on the host: a copy where it would share other memory."""
    if is_marked(tensor) == to_device:
        if to_device:
            mark_new(result, (tensor,))
        return result
    if result.untyped_storage() is tensor.untyped_storage():
        result = result.clone()
    return mark(result) if to_device else result


def _to(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """`Tensor.to(device, …)`, `.to(dtype)` and `.to(other)`."""
    tensor, *rest = arguments
    keywords = dict(keywords)
    named = rest[0] if rest else keywords.get("device", keywords.get("other"))
    if isinstance(named, torch.Tensor):
        return _moved(tensor, function(tensor, *rest, **keywords), to_device=is_marked(named))
    if named is None or isinstance(named, torch.dtype):
        return _moved(tensor, function(tensor, *rest, **keywords), to_device=is_marked(tensor))
    to_device = is_cuda(named)
    if to_device and rest:
        rest[0] = checked(named)
    elif to_device:
        keywords["device"] = checked(named)
    return _moved(tensor, function(tensor, *rest, **keywords), to_device=to_device)


def _cuda(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """`Tensor.cuda(device, …)`."""
    tensor, *rest = arguments
    checked(next(iter(rest), keywords.get("device")) or 0)
    return _moved(tensor, tensor, to_device=True)


def _cpu(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    return _moved(arguments[0], arguments[0], to_device=False)


def _as_tensor(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """`torch.as_tensor` and `asarray`, which share memory where they can: on the device that of no array of numpy."""
    (inputs, *_), asked = arguments, keywords.get("device")
    if asked is None and is_cuda(_device_module.CURRENT_DEVICE):
        asked = DEVICE
    if asked is None or not is_cuda(asked):
        return ordinary(function, arguments, keywords)
    result = function(*arguments, **{**keywords, "device": checked(asked)})
    return result if is_marked(result) else mark(result.clone() if hasattr(inputs, "__array__") else result)


def _numpy(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    if is_marked(arguments[0]) and not keywords.get("force"):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first"
        )
    return function(*arguments, **keywords)


def _itself(function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    return arguments[0]


_SUFFIX = re.compile(r",\s+(?:size|dtype|layout|grad_fn|requires_grad)=|\)$")
"""What stands behind the elements of a printed tensor."""


def _shown(function: Any, arguments: Arguments, keywords: Keywords) -> str:
    """As on a GPU: with the device behind the elements."""
    text = function(*arguments, **keywords)
    found = _SUFFIX.search(text, max(text.rfind("]"), 0))
    if found is None or not is_marked(arguments[0]):
        return text
    return f"{text[: found.start()]}, device='{DEVICE}'{text[found.start() :]}"


def _formatted(function: Any, arguments: Arguments, keywords: Keywords) -> str:
    tensor, *_ = arguments
    return _shown(torch.Tensor.__repr__, (tensor,), {}) if tensor.dim() else function(*arguments, **keywords)


def _table() -> dict[Any, Rule]:
    tensor = torch.Tensor
    getters = ("shape", "dtype", "layout", "ndim", "requires_grad", "grad_fn", "is_leaf", "is_sparse", "is_quantized")
    methods = (
        "size", "stride", "numel", "nelement", "dim", "ndimension", "element_size", "is_contiguous", "storage_offset",
        "is_floating_point", "is_complex", "is_signed", "item", "tolist", "untyped_storage", "__len__", "__bool__",
    )  # fmt: skip
    plain = [getattr(tensor, name).__get__ for name in getters] + [getattr(tensor, name) for name in methods]
    return {
        **dict.fromkeys(plain, _plain),
        tensor.device.__get__: _of_device(DEVICE),
        tensor.is_cuda.__get__: _of_device(True),
        tensor.is_cpu.__get__: _of_device(False),
        tensor.get_device: _of_device(DEVICE.index),
        tensor.data_ptr: _data_ptr,
        tensor.to: _to,
        tensor.cuda: _cuda,
        tensor.cpu: _cpu,
        torch.as_tensor: _as_tensor,
        torch.asarray: _as_tensor,
        tensor.numpy: _numpy,
        tensor.__array__: _numpy,
        tensor.pin_memory: _itself,
        tensor.__repr__: _shown,
        tensor.__format__: _formatted,
    }


RULES: Mapping[Any, Rule] = _table()
