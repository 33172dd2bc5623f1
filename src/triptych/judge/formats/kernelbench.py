"""KernelBench's format, the candidate's side: a module `ModelNew`, called as the problem's `Model` is.

What a problem is made of stands in `problems/kernelbench.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triptych.core.errors import UnsupportedFeature
from triptych.core.plan import Launch
from triptych.execution.capture import recording
from triptych.judge.capture.request import Arguments, ArraySpec, CaptureSize
from triptych.judge.formats.format import Call, Format, Namespace, NoSolution
from triptych.judge.formats.values import filled

SEED = 42
"""What both models are made with, as KernelBench does it."""


@dataclass(frozen=True)
class KernelBenchCall(Arguments):
    """How `ModelNew` is made and called."""

    init: Sequence[object]
    forward: Sequence[object]
    state: Mapping[str, str]
    """Names of inputs by those of the model's parameters and buffers."""


def bind(namespace: Namespace, size: CaptureSize) -> Call:
    """`ModelNew`, made once; each call puts the inputs in the place of its parameters and buffers.

    Raises:
        NoSolution: where there is no such class, or it has not the problem's parameters.
        UnsupportedFeature: where it launches kernels while it is made.
    """
    call = size.arguments
    assert isinstance(call, KernelBenchCall)
    made: Any = namespace.get("ModelNew")
    if not callable(made):
        raise NoSolution("the source defines no class `ModelNew`")
    torch: Any = sys.modules["torch"]
    with recording() as building:
        torch.manual_seed(SEED)
        model: Any = made(*call.init)
        if not isinstance(model, torch.nn.Module):
            raise NoSolution("`ModelNew` makes no torch.nn.Module")
        model.cuda()
    if any(isinstance(node, Launch) for node in building.nodes):
        raise UnsupportedFeature("kernels launched by ModelNew's __init__: the parameters have no values there")
    _check_state(model, call, {one.name: one for one in size.inputs})

    def run(inputs: Sequence[Any]) -> object:
        arrays = dict(zip((one.name for one in size.inputs), inputs, strict=True))
        for key, name in call.state.items():
            _put(torch, model, key, arrays[name])
        with torch.no_grad():
            return model(*filled(list(call.forward), arrays, lambda _: None))

    return run


def _check_state(model: Any, call: KernelBenchCall, inputs: Mapping[str, ArraySpec]) -> None:  # noqa: ANN401  # a module
    have = model.state_dict()
    for key, name in call.state.items():
        if key not in have:
            known = ", ".join(have) or "none"
            raise NoSolution(f"ModelNew has no parameter or buffer `{key}`, as Model has; it has: {known}")
        if tuple(have[key].shape) != inputs[name].shape:
            raise NoSolution(f"ModelNew's `{key}` has the shape {list(have[key].shape)}; expected {inputs[name]}")


def _put(torch: Any, model: Any, key: str, tensor: Any) -> None:  # noqa: ANN401  # torch has no types here
    """The tensor as a parameter or a buffer of the model, or of a module in it."""
    *path, name = key.split(".")
    owner = model.get_submodule(".".join(path))
    if name in owner._parameters:
        owner._parameters[name] = torch.nn.Parameter(tensor, requires_grad=False)
    else:
        owner._buffers[name] = tensor


KERNELBENCH = Format(
    "kernelbench",
    "ModelNew",
    "A module `ModelNew` of torch, whose forward pass launches kernels, for a KernelBench problem's `Model`.",
    torch=True,
    bind=bind,
)
