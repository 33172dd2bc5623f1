"""Which arguments are arrays under Triton, and the handles that they are bound to."""

from __future__ import annotations

from triptych.core.handles import Handle
from triptych.execution.host import is_array as is_host_array
from triptych.execution.memory import memory
from triptych.languages.triton.internals import reinterpreted


def is_array(value: object) -> bool:
    """Whether a kernel gets a pointer to it: numpy, triptych and torch arrays, handles, reinterpreted arrays."""
    return is_host_array(value) or isinstance(value, Handle) or reinterpreted(value) is not None


def bind(array: object) -> Handle:
    """The handle of an array; of a reinterpreted one (`triton.reinterpret(array, dtype)`), that of its base.

    Raises:
        ArgumentError: for a tensor that is not in host memory, and for elements that no kernel can read.
    """
    if isinstance(array, Handle):
        return array
    base = reinterpreted(array)
    return memory().bind(array if base is None else base)
