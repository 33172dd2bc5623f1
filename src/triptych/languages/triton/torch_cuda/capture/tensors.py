"""Tensors without data and the plan's storages that they stand for; data of the host that goes to the device."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from importlib import import_module
from typing import Any

from triptych.core.dtypes import DTYPES
from triptych.core.errors import CaptureError, ValueTouched
from triptych.core.handles import Handle, Storage
from triptych.execution.call_site import call_site
from triptych.execution.capture.arrays import touched
from triptych.execution.memory import memory
from triptych.execution.recorder import Recorder
from triptych.execution.torch_tensors import CAPTURED, TORCH_DTYPES, captured_storage, captured_tensor
from triptych.languages.triton.torch_cuda.marks import is_marked

torch: Any = import_module("torch")
META: Any = torch.device("meta")
_DTYPES = {name: getattr(torch, kind.removeprefix("torch.")) for kind, name in TORCH_DTYPES.items()}


def recorder() -> Recorder:
    """Who records.

    Raises:
        CaptureError: where nobody does: a tensor has outlived its capture.
    """
    found = memory().recorder
    if found is None:
        raise CaptureError("a tensor of a capture that has ended", where=call_site())
    return found


def is_captured(value: Any) -> bool:
    """Whether it is a tensor without data that stands for a storage of a plan. Called where no mode is in force."""
    return isinstance(value, torch.Tensor) and captured_storage(value) is not None


def handle_of(tensor: Any) -> Handle:
    """The handle of a captured tensor, in the capture that is under way."""
    found = captured_tensor(tensor)
    assert found is not None
    return recorder().current(found)


def tensor_of(handle: Handle) -> Any:
    """A tensor that stands for an array of the plan."""
    item, kind = handle.dtype.bytes, _DTYPES[handle.dtype.name]
    with torch._C.DisableTorchFunction():
        whole = torch.empty(handle.storage.size // item, dtype=kind, device=META)
        setattr(whole.untyped_storage(), CAPTURED, handle.storage)
        return whole.as_strided(handle.shape, [step // item for step in handle.strides], handle.offset // item)


def attach(tensor: Any) -> Storage:
    """The storage of the plan that a tensor without data stands for; a new allocation where it had none."""
    storage = tensor.untyped_storage()
    if not hasattr(storage, CAPTURED):
        setattr(storage, CAPTURED, recorder().empty((storage.nbytes(),), DTYPES["u8"]).handle.storage)
    return getattr(storage, CAPTURED)


def upload(tensor: Any) -> Any:
    """A captured tensor with the data of one of the host: a constant of the plan of its own."""
    dense = tensor.detach().contiguous()
    handle = recorder().constant_of(memory().find(dense), dense)
    made = tensor_of(handle)
    return made.requires_grad_() if tensor.requires_grad else made


def on_device(value: Any) -> Any:
    """The value; a tensor with data that says it lies on the device comes into the plan with it."""
    if isinstance(value, torch.Tensor) and is_marked(value):
        return tensor_of(memory().bind(value))
    return value


def label(tensor: Any) -> str:
    """As messages call a captured tensor."""
    handle = handle_of(tensor)
    return f"'{handle.storage.name}' ({handle.dtype}[{', '.join(map(str, handle.shape))}])"


def needs_values(tensor: Any, what: str) -> ValueTouched:
    """The error of something that needs a captured tensor's values, at the author's line."""
    return touched(label(tensor), what)
