"""Which arguments are arrays under Triton, and the handles that they are bound to."""

from __future__ import annotations

import weakref

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


_bound: dict[int, tuple[weakref.ref[object], Handle]] = {}
"""The handles of arrays that Triton has specialised a launch for and not yet launched, by the array's `id`."""
_MOST_BOUND = 1024
"""Launches that fail in between leave theirs."""


def bind_for_launch(array: object) -> Handle:
    """As `bind`; the launch that is being made gets the handle from `bound`."""
    handle = bind(array)
    if handle is not array and type(array).__weakrefoffset__:
        if len(_bound) >= _MOST_BOUND:
            _bound.clear()
        _bound[id(array)] = weakref.ref(array), handle
    return handle


def bound(array: object) -> Handle:
    """As `bind`, and quicker where `bind_for_launch` has just been asked for the array."""
    kept = _bound.pop(id(array), None)
    return bind(array) if kept is None or kept[0]() is not array else kept[1]
