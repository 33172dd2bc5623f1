"""GPU MODE's format, the candidate's side: `custom_kernel(data)`, with the problem's own `task` and `utils`.

What a problem is made of stands in `problems/gpu_mode.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triptych.judge.capture.request import Arguments, ArraySpec, CaptureSize
from triptych.judge.formats.format import Call, Format, Namespace, NoSolution
from triptych.judge.formats.values import filled


@dataclass(frozen=True)
class GpuModeCall(Arguments):
    """What `custom_kernel` is called with."""

    data: object


def bind(namespace: Namespace, size: CaptureSize) -> Call:
    """`custom_kernel` on the data; where the problem gives it memory for the output, that is new in each call.

    Raises:
        NoSolution: where there is no such function.
    """
    call = size.arguments
    assert isinstance(call, GpuModeCall)
    function = namespace.get("custom_kernel")
    if not callable(function):
        raise NoSolution("the source defines no function `custom_kernel`")

    def run(inputs: Sequence[Any]) -> object:
        arrays = dict(zip((one.name for one in size.inputs), inputs, strict=True))
        return function(filled(call.data, arrays, _memory))

    return run


def _memory(array: ArraySpec) -> Any:  # noqa: ANN401  # torch's tensor
    torch: Any = sys.modules["torch"]
    return torch.empty(array.shape, dtype=getattr(torch, array.kind.label), device="cuda")


GPU_MODE = Format(
    "gpu_mode",
    "custom_kernel",
    "A function `custom_kernel(data)`, as submissions to GPU MODE's leaderboards have it.",
    torch=True,
    bind=bind,
)
