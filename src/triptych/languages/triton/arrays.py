"""Which arguments are arrays under Triton, and the handles that they are bound to."""

from __future__ import annotations

from typing import Any, cast

from triptych.core.handles import Handle
from triptych.execution.host import is_array as is_host_array
from triptych.execution.memory import memory


def is_array(value: object) -> bool:
    """Whether a kernel gets a pointer to it: numpy, triptych and torch arrays, handles, reinterpreted arrays."""
    return is_host_array(value) or isinstance(value, Handle) or _is_reinterpretation(value)


def bind(array: object) -> Handle:
    """The handle of an array; of a reinterpreted one (`triton.reinterpret(array, dtype)`), that of its base.

    Raises:
        ArgumentError: for a tensor that is not in host memory, and for elements that no kernel can read.
    """
    if isinstance(array, Handle):
        return array
    return memory().bind(cast(Any, array).base if _is_reinterpretation(array) else array)


def _is_reinterpretation(value: object) -> bool:
    """Whether the value is a `triton.runtime.jit.TensorWrapper` (3.6 to 3.9)."""
    kind = type(value)
    return kind.__name__ == "TensorWrapper" and kind.__module__ == "triton.runtime.jit"
